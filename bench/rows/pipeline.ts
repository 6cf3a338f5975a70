import { startGalatea } from "../../conformance/environments/index.ts";
import { mustAsk } from "../ask.ts";
import { requestBytes, runLoad } from "../load.ts";
import { onward } from "../models.ts";
import { endpointHeaders, invocationBytes, startPlatform } from "../platform.ts";
import type { BenchContext, Measure } from "../row.ts";
import { temporaryDirectory, writeModels } from "../servers.ts";

const containerCount = 3;
/** What the generate extension answers is what it takes: a tensor by its name. */
const environment = { SAGEMAKER_TRITON_INFERENCE_TYPE: "generate", SAGEMAKER_TRITON_DEFAULT_MODEL_NAME: "onward" };
const body = Buffer.from(JSON.stringify({ X: Array.from({ length: 16 }, (_, index) => index) }));

/** What the platform adds to three containers behind each other, of which each is asked alone beside it. */
export const pipelineRow = {
  name: "pipeline",
  async measure(context: BenchContext): Promise<Measure[]> {
    await using data = await temporaryDirectory();
    await using repository = await temporaryDirectory();
    await writeModels(repository.path, onward);
    await using platform = await startPlatform(data.path);
    await platform.putArchive("pipeline/onward.tar.gz", onward);
    await platform.createPipeline("pipeline", "pipeline/onward.tar.gz", { containerCount, environment });
    const path = "/endpoints/pipeline/invocations";
    const answer = await mustAsk(platform.port, "POST", path, body, endpointHeaders);
    const [first] = (JSON.parse(answer.toString()) as { X: number[] }).X;
    if (first !== containerCount) throw new Error(`the pipeline answered ${first}, not ${containerCount}`);
    const direct = await startGalatea({ repositories: [repository.path], env: environment });
    try {
      const run = async (port: number, request: Uint8Array) => {
        const timing = { durationMs: context.quick ? 500 : 4000, warmUpMs: context.quick ? 200 : 1000 };
        const { p50Us, p99Us } = await runLoad({ port, request, clients: 1, ...timing });
        return { p50: p50Us / 1000, p99: p99Us / 1000 };
      };
      const added: { readonly p50: number; readonly p99: number }[] = [];
      for (let round = 0; round < context.rounds; round++) {
        const through = await run(platform.port, invocationBytes("pipeline", body));
        const alone = await run(
          direct.sagemakerPort,
          requestBytes("/invocations", body, { "content-type": "application/json" }),
        );
        added.push({ p50: through.p50 - containerCount * alone.p50, p99: through.p99 - containerCount * alone.p99 });
        const shown = ({ p50, p99 }: typeof alone) => `p50 ${p50.toFixed(3)} ms, p99 ${p99.toFixed(3)} ms`;
        context.log(`pipeline ${shown(through)}; one container ${shown(alone)}`);
      }
      const measure = (which: "p50" | "p99", max: number): Measure => ({
        what: `pipeline of three containers minus the sum of the containers, ${which}`,
        unit: "ms",
        ours: added.map((each) => each[which]),
        oracle: [],
        goal: { kind: "at most", of: "ours", value: max },
      });
      return [measure("p50", 1), measure("p99", 2.5)];
    } finally {
      await direct.stop();
    }
  },
};
