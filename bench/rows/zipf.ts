import { seededRandom } from "../../conformance/seeded-random.ts";
import { sendRequest } from "../send-request.ts";
import { pack } from "../archive.ts";
import { weighty } from "../models.ts";
import { invokeHeaders, metricStatistics, startPlatform, warmUp, type Platform } from "../platform.ts";
import { treeMemory } from "../processes.ts";
import { median, type BenchContext, type Measure } from "../row.ts";
import { temporaryDirectory } from "../servers.ts";
import { idealLruHitRate, zipf } from "../zipf.ts";

const instanceType = "ml.c5.large";
/** Memory for the models: enough for a tenth of them, within the instance's limit. Each needs 16 MiB and its worker's memory. */
const modelBytes = 20 * 2 ** 20;
/** Disk cache bytes of one model: two small files, each charged with one block in addition to its bytes. A fifth of the models fit. */
const modelDiskBytes = 10 * 2 ** 10;
/** Share of an instance's memory for models; the rest is for the container. */
const modelMemoryShare = 0.9;
const modelMemoryBytesMax = Math.floor(modelMemoryShare * 4 * 2 ** 30);
const clients = 8;
const sampleEveryMs = 2000;
const endpoint = "zipf";
const body = Buffer.from(JSON.stringify({ inputs: [{ name: "IN", datatype: "INT32", shape: [1], data: [0] }] }));

interface Outcome {
  /** Responses of models that had responded since their load, and first responses. */
  readonly hitsMs: number[];
  readonly missesMs: number[];
  readonly failures: string[];
  /** The requested models in order, with their times. */
  readonly sequence: number[];
  readonly times: { startMs: number; endMs: number }[];
}

/** Thousands of models of one endpoint, invoked with Zipf's weights by eight clients. */
export const zipfRow = {
  name: "zipf",
  async measure(context: BenchContext): Promise<Measure[]> {
    const modelCount = context.zipfModels;
    await using data = await temporaryDirectory();
    await using platform = await startPlatform(data.path);
    const archive = await pack(weighty);
    for (let index = 0; index < modelCount; index++) await platform.putObject(`zipf/${index}.tar.gz`, archive);
    context.log(`${modelCount} archives uploaded`);
    const memoryBytes = Math.min(modelMemoryBytesMax, Math.ceil(modelCount / 10) * modelBytes);
    await platform.createMultiModelEndpoint(endpoint, "zipf/", instanceType, {
      environment: {
        GALATEA_MODEL_MEMORY_BYTES: String(memoryBytes),
        GALATEA_MODEL_DISK_BYTES: String(Math.ceil(modelCount / 5) * modelDiskBytes),
      },
    });
    await warmUp(platform);
    const restBytes = (await treeMemory(platform.pid)).proportionalBytes;
    const outcome: Outcome = { hitsMs: [], missesMs: [], failures: [], sequence: [], times: [] };
    const endMs = performance.now() + context.zipfSeconds * 1000;
    const next = zipf(modelCount, 1, seededRandom(7));
    const memory = sampleMemory(platform, endMs);
    await Promise.all(Array.from({ length: clients }, () => runClient(platform, next, endMs, outcome)));
    const heldBytes = Math.max(...(await memory)) - restBytes;
    const loaded = (await metricStatistics(platform, "/aws/sagemaker/Endpoints", "LoadedModelCount", endpoint)).max;
    const hits = await metricStatistics(platform, "AWS/SageMaker", "ModelCacheHit", endpoint);
    const downloads = await metricStatistics(platform, "AWS/SageMaker", "ModelDownloadingTime", endpoint);
    const hitRate = hits.sum / hits.count;
    const ideal = idealLruHitRate(outcome.sequence, loaded, outcome.times);
    for (const failure of outcome.failures.slice(0, 5)) context.log(`failed: ${failure}`);
    const counted = `${hits.count} invocations, of them ${hits.sum} for loaded models, ${outcome.missesMs.length} first answers`;
    context.log(`${downloads.count} downloads`);
    context.log(`${counted}; at most ${loaded} loaded; hit rate ${hitRate.toFixed(4)}, ideal LRU ${ideal.toFixed(4)}`);
    const plain = (what: string, unit: string, value: number, max: number | null): Measure => ({
      what: `${modelCount} models, Zipf 1.0: ${what}`,
      unit,
      ours: [value],
      oracle: [],
      goal: max === null ? null : { kind: "at most", of: "ours", value: max },
    });
    return [
      plain("failed requests", "", outcome.failures.length, 0),
      plain("proportional memory added at its peak", "MB", heldBytes / 1e6, memoryBytes / modelMemoryShare / 1e6),
      plain("hit rate below an ideal LRU's", "points", (ideal - hitRate) * 100, 1),
      plain("loaded at once, at most", "", loaded, null),
      plain("hits, p50", "ms", median(outcome.hitsMs), null),
      plain("hits, p99", "ms", quantile(outcome.hitsMs, 0.99), null),
      plain("misses, p50", "ms", median(outcome.missesMs), null),
      plain("misses, p99", "ms", quantile(outcome.missesMs, 0.99), null),
    ];
  },
};

async function runClient(platform: Platform, next: () => number, endMs: number, outcome: Outcome): Promise<void> {
  while (performance.now() < endMs) {
    const index = next();
    outcome.sequence.push(index);
    const startMs = performance.now();
    const time = { startMs, endMs: Number.POSITIVE_INFINITY };
    outcome.times.push(time);
    const path = `/endpoints/${endpoint}/invocations`;
    const response = await sendRequest(platform.port, "POST", path, body, invokeHeaders(`${index}.tar.gz`));
    time.endMs = performance.now();
    const tookMs = time.endMs - startMs;
    if (response.status !== 200) {
      outcome.failures.push(`${response.status} ${response.body.toString("utf8").slice(0, 300)}`);
      continue;
    }
    const { outputs } = JSON.parse(response.body.toString("utf8")) as { outputs: { data: number[] }[] };
    (outputs[0]?.data[0] === 1 ? outcome.missesMs : outcome.hitsMs).push(tookMs);
  }
}

async function sampleMemory(platform: Platform, endMs: number): Promise<number[]> {
  const samples: number[] = [];
  while (performance.now() < endMs) {
    samples.push((await treeMemory(platform.pid)).proportionalBytes);
    await new Promise((resolve) =>
      setTimeout(resolve, Math.max(0, Math.min(sampleEveryMs, endMs - performance.now()))),
    );
  }
  return samples;
}

function quantile(values: readonly number[], share: number): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length * share)] ?? Number.NaN;
}
