import { CloudWatchClient, GetMetricStatisticsCommand } from "@aws-sdk/client-cloudwatch";
import { ask } from "../ask.ts";
import { pack } from "../archive.ts";
import { weighty } from "../models.ts";
import { clientSettings, invokeHeaders, startPlatform, warmUp, type Platform } from "../platform.ts";
import { treeMemory } from "../processes.ts";
import { median, type BenchContext, type Measure } from "../row.ts";
import { temporaryDirectory } from "../servers.ts";
import { idealLruHitRate, seededRandom, zipf } from "../zipf.ts";

/** 4 GiB: room for about two hundred of the models, each of which holds 16 MiB. */
const instanceType = "ml.c5.large";
const instanceMemoryBytes = 4 * 2 ** 30;
const clients = 8;
const sampleEveryMs = 5000;
const endpoint = "zipf";
const body = Buffer.from(JSON.stringify({ inputs: [{ name: "IN", datatype: "INT32", shape: [1], data: [0] }] }));

interface Outcome {
  readonly hitsMs: number[];
  readonly missesMs: number[];
  readonly failures: string[];
  readonly sequence: number[];
}

/** Thousands of models behind one endpoint, asked with Zipf's weights by eight clients. */
export const zipfRow = {
  name: "zipf",
  async measure(context: BenchContext): Promise<Measure[]> {
    const modelCount = context.zipfModels;
    await using data = await temporaryDirectory();
    await using platform = await startPlatform(data.path);
    const archive = await pack(weighty);
    for (let index = 0; index < modelCount; index++) await platform.putObject(`zipf/${index}.tar.gz`, archive);
    context.log(`${modelCount} archives uploaded`);
    await platform.createMultiModelEndpoint(endpoint, "zipf/", instanceType);
    await warmUp(platform);
    const outcome: Outcome = { hitsMs: [], missesMs: [], failures: [], sequence: [] };
    const endMs = performance.now() + context.zipfSeconds * 1000;
    const next = zipf(modelCount, 1, seededRandom(7));
    const memory = sampleMemory(platform, endMs);
    await Promise.all(Array.from({ length: clients }, () => runClient(platform, next, endMs, outcome)));
    const peakBytes = Math.max(...(await memory));
    const loaded = await loadedModels(platform);
    const answered = outcome.hitsMs.length + outcome.missesMs.length;
    const hitRate = outcome.hitsMs.length / answered;
    const ideal = idealLruHitRate(outcome.sequence, loaded);
    for (const failure of outcome.failures.slice(0, 5)) context.log(`failed: ${failure}`);
    context.log(`${answered} answers, ${loaded} loaded, hit rate ${hitRate.toFixed(4)}, ideal LRU ${ideal.toFixed(4)}`);
    const plain = (what: string, unit: string, value: number, max: number | null): Measure => ({
      what: `${modelCount} models, Zipf 1.0: ${what}`,
      unit,
      ours: [value],
      oracle: [],
      goal: max === null ? null : { kind: "at most", of: "ours", value: max },
    });
    return [
      plain("failed requests", "", outcome.failures.length, 0),
      plain("proportional memory at its peak", "MB", peakBytes / 1e6, instanceMemoryBytes / 1e6),
      plain("hit rate below an ideal LRU's", "points", (ideal - hitRate) * 100, 1),
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
    const path = `/endpoints/${endpoint}/invocations`;
    const answer = await ask(platform.port, "POST", path, body, invokeHeaders(`${index}.tar.gz`));
    const tookMs = performance.now() - startMs;
    if (answer.status !== 200) {
      outcome.failures.push(`${answer.status} ${answer.body.toString("utf8").slice(0, 300)}`);
      continue;
    }
    const { outputs } = JSON.parse(answer.body.toString("utf8")) as { outputs: { data: number[] }[] };
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

/** The most that were loaded at once, as the platform's own metric says. */
async function loadedModels(platform: Platform): Promise<number> {
  const client = new CloudWatchClient(clientSettings(platform.port));
  try {
    const { Datapoints = [] } = await client.send(
      new GetMetricStatisticsCommand({
        Namespace: "AWS/SageMaker",
        MetricName: "LoadedModelCount",
        Dimensions: [
          { Name: "EndpointName", Value: endpoint },
          { Name: "VariantName", Value: "AllTraffic" },
        ],
        StartTime: new Date(Date.now() - 3_600_000),
        EndTime: new Date(Date.now() + 60_000),
        Period: 60,
        Statistics: ["Maximum"],
      }),
    );
    return Math.max(1, ...Datapoints.map((point) => point.Maximum ?? 0));
  } finally {
    client.destroy();
  }
}

function quantile(values: readonly number[], share: number): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length * share)] ?? Number.NaN;
}
