import { mustAsk } from "../ask.ts";
import { runLoad, type LoadResult } from "../load.ts";
import { readers, readingEnsemble } from "../models.ts";
import { endpointHeaders, invocationBytes, startPlatform, type Platform } from "../platform.ts";
import type { BenchContext, Measure } from "../row.ts";
import { temporaryDirectory } from "../servers.ts";

const body = Buffer.from(JSON.stringify({ X: Array.from({ length: 64 }, (_, index) => Math.sin(index)) }));
const environment = (model: string) => ({
  SAGEMAKER_TRITON_INFERENCE_TYPE: "generate",
  SAGEMAKER_TRITON_DEFAULT_MODEL_NAME: model,
});

/** Quality, recognition and topic of a document, one behind the other: as an inference pipeline of three containers, and as one ensemble in one. */
export const pipelineEnsembleRow = {
  name: "pipeline-ensemble",
  async measure(context: BenchContext): Promise<Measure[]> {
    await using data = await temporaryDirectory();
    await using platform = await startPlatform(data.path);
    const containers = [];
    for (const [name, model] of Object.entries(readers)) {
      await platform.putArchive(`reading/${name}.tar.gz`, { [name]: model });
      containers.push({ key: `reading/${name}.tar.gz`, environment: environment(name) });
    }
    await platform.createPipeline("three", containers);
    await platform.putArchive("reading/ensemble.tar.gz", readingEnsemble);
    await platform.createPipeline("one", [{ key: "reading/ensemble.tar.gz", environment: environment("reading") }]);
    const [three, one] = [await answerOf(platform, "three"), await answerOf(platform, "one")];
    const isEqual = three.length === 64 && three.every((value, index) => Math.abs(value - (one[index] ?? NaN)) < 1e-6);
    if (!isEqual) throw new Error("the pipeline and the ensemble answer differently");
    const measures: Measure[] = [];
    for (const clients of [1, 8]) measures.push(...(await compare(context, platform.port, clients)));
    return measures;
  },
};

async function answerOf(platform: Platform, endpoint: string): Promise<readonly number[]> {
  const answer = await mustAsk(platform.port, "POST", `/endpoints/${endpoint}/invocations`, body, endpointHeaders);
  const { X, Y } = JSON.parse(answer.toString()) as { X?: number[]; Y?: number[] };
  return Y ?? X ?? [];
}

/** In alternating rounds; what stands under `oracle` is the pipeline. */
async function compare(context: BenchContext, port: number, clients: number): Promise<Measure[]> {
  const timing = { durationMs: context.quick ? 500 : 3000, warmUpMs: context.quick ? 200 : 500 };
  const run = (endpoint: string) => runLoad({ port, request: invocationBytes(endpoint, body), clients, ...timing });
  const rounds: { readonly one: LoadResult; readonly three: LoadResult }[] = [];
  for (let round = 0; round < context.rounds; round++) {
    const [one, three] = [await run("one"), await run("three")];
    rounds.push({ one, three });
    const shown = ({ p50Us, perSecond }: LoadResult) =>
      `p50 ${(p50Us / 1000).toFixed(3)} ms, ${perSecond.toFixed(0)} a second`;
    context.log(`${clients} clients: ensemble ${shown(one)}; pipeline ${shown(three)}`);
  }
  const name = `quality, recognition, topic as one ensemble beside a pipeline, ${clients} client${clients === 1 ? "" : "s"}`;
  const each = (of: "one" | "three", figure: "p50Us" | "perSecond", scale = 1) =>
    rounds.map((round) => round[of][figure] * scale);
  return [
    {
      what: `${name}, p50`,
      unit: "ms",
      ours: each("one", "p50Us", 1e-3),
      oracle: each("three", "p50Us", 1e-3),
      goal: null,
    },
    {
      what: `${name}, throughput`,
      unit: "per s",
      ours: each("one", "perSecond"),
      oracle: each("three", "perSecond"),
      goal: null,
    },
  ];
}
