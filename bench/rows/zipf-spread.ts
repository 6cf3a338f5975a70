import { seededRandom } from "../../conformance/seeded-random.ts";
import { sendRequest } from "../send-request.ts";
import { pack } from "../archive.ts";
import { addSub } from "../models.ts";
import { invokeHeaders, metricStatistics, startPlatform, warmUp, type Platform } from "../platform.ts";
import { addSubBody } from "../requests.ts";
import { median, type BenchContext, type Measure } from "../row.ts";
import { temporaryDirectory } from "../servers.ts";
import { zipf } from "../zipf.ts";

const instanceType = "ml.c5.large";
const clients = 8;
const instanceCounts = [1, 3] as const;
const modelCount = 60;

/**
 * Models with Zipf's weights on one instance and on three, which have memory for all of them: the number of
 * loads of each model.
 */
export const zipfSpreadRow = {
  name: "zipf-spread",
  async measure(context: BenchContext): Promise<Measure[]> {
    await using data = await temporaryDirectory();
    await using platform = await startPlatform(data.path);
    const archive = await pack(addSub);
    for (let index = 0; index < modelCount; index++) await platform.putObject(`spread/${index}.tar.gz`, archive);
    await warmUp(platform);
    const next = zipf(modelCount, 1, seededRandom(11));
    const sequence = Array.from({ length: context.quick ? 400 : 4000 }, next);
    const differentCount = new Set(sequence).size;
    const measures: Measure[] = [];
    const plain = (what: string, unit: string, value: number, max: number | null): Measure => ({
      what: `${modelCount} models, Zipf 1.0: ${what}`,
      unit,
      ours: [value],
      oracle: [],
      goal: max === null ? null : { kind: "at most", of: "ours", value: max },
    });
    for (const instanceCount of instanceCounts) {
      const endpoint = `spread-${instanceCount}`;
      await platform.createMultiModelEndpoint(endpoint, "spread/", instanceType, { instanceCount });
      const { answersMs, failureCount } = await askAll(platform, endpoint, sequence);
      const loads = (await metricStatistics(platform, "AWS/SageMaker", "ModelLoadingTime", endpoint)).count;
      const on = instanceCount === 1 ? "on one instance" : `on ${instanceCount} instances`;
      context.log(`${on}: ${sequence.length} requests for ${differentCount} models, ${loads} loads`);
      measures.push(
        plain(`${on}, failed requests`, "", failureCount, 0),
        plain(`${on}, loads per model that was asked for`, "", loads / differentCount, 1.1),
        plain(`${on}, p50`, "ms", median(answersMs), null),
      );
    }
    const most = Math.max(...instanceCounts);
    const atRandom = randomLoads(sequence, most, seededRandom(12)) / differentCount;
    return [...measures, plain(`on ${most} instances, loads per model if chosen at random`, "", atRandom, null)];
  },
};

async function askAll(platform: Platform, endpoint: string, sequence: readonly number[]) {
  const answersMs: number[] = [];
  let failureCount = 0;
  let at = 0;
  const one = async () => {
    for (let model = sequence[at++]; model !== undefined; model = sequence[at++]) {
      const startMs = performance.now();
      const path = `/endpoints/${endpoint}/invocations`;
      const { status } = await sendRequest(platform.port, "POST", path, addSubBody, invokeHeaders(`${model}.tar.gz`));
      if (status === 200) answersMs.push(performance.now() - startMs);
      else failureCount += 1;
    }
  };
  await Promise.all(Array.from({ length: clients }, one));
  return { answersMs, failureCount };
}

/** Number of loads if each request goes to a random instance. */
function randomLoads(sequence: readonly number[], instanceCount: number, random: () => number): number {
  return new Set(sequence.map((model) => `${model} ${Math.floor(random() * instanceCount)}`)).size;
}
