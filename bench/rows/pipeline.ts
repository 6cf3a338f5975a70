import { startGalatea, type RunningServer } from "../../conformance/environments/index.ts";
import { requestOk } from "../send-request.ts";
import { requestBytes, runLoad, runRounds, type LoadResult } from "../load.ts";
import { onward } from "../models.ts";
import { endpointHeaders, invocationBytes, startPlatform } from "../platform.ts";
import type { BenchContext, Measure } from "../row.ts";
import { temporaryDirectory, writeModels } from "../servers.ts";

const containerCount = 3;
/** Request and response of the generate extension have the same form: a tensor by its name. */
const environment = { SAGEMAKER_TRITON_INFERENCE_TYPE: "generate", SAGEMAKER_TRITON_DEFAULT_MODEL_NAME: "onward" };
const body = Buffer.from(JSON.stringify({ X: Array.from({ length: 16 }, (_, index) => index) }));

/** Overhead of the platform over three containers in sequence, compared with a client that calls three such containers. */
export const pipelineRow = {
  name: "pipeline",
  async measure(context: BenchContext): Promise<Measure[]> {
    await using data = await temporaryDirectory();
    await using repository = await temporaryDirectory();
    await writeModels(repository.path, onward);
    await using platform = await startPlatform(data.path);
    await platform.putArchive("pipeline/onward.tar.gz", onward);
    const container = { key: "pipeline/onward.tar.gz", environment };
    await platform.createPipeline(
      "pipeline",
      Array.from({ length: containerCount }, () => container),
    );
    const path = "/endpoints/pipeline/invocations";
    const response = await requestOk(platform.port, "POST", path, body, endpointHeaders);
    const [first] = (JSON.parse(response.toString()) as { X: number[] }).X;
    if (first !== containerCount) throw new Error(`the pipeline answered ${first}, not ${containerCount}`);
    const containers: RunningServer[] = [];
    try {
      for (let index = 0; index < containerCount; index++) {
        containers.push(await startGalatea({ repositories: [repository.path], env: environment }));
      }
      const ports = containers.map(({ sagemakerPort }) => sagemakerPort);
      const timing = { durationMs: context.quick ? 500 : 4000, warmUpMs: context.quick ? 200 : 1000 };
      const request = requestBytes("/invocations", body, { "content-type": "application/json" });
      const through = { port: platform.port, request: invocationBytes("pipeline", body), clients: 1, ...timing };
      const rounds: { readonly pipeline: LoadResult; readonly inTurn: LoadResult }[] = [];
      for (let round = 0; round < context.rounds; round++) {
        const pipeline = await runLoad(through);
        const inTurn = await runRounds({ ports, request, ...timing });
        rounds.push({ pipeline, inTurn });
        const shown = ({ p50Us, p99Us }: LoadResult) =>
          `p50 ${(p50Us / 1000).toFixed(3)} ms, p99 ${(p99Us / 1000).toFixed(3)} ms`;
        context.log(`pipeline ${shown(pipeline)}; its containers in turn ${shown(inTurn)}`);
      }
      const measure = (which: "p50" | "p99", max: number): Measure => ({
        what: `pipeline of three containers minus the three asked in turn, ${which}`,
        unit: "ms",
        ours: rounds.map(({ pipeline, inTurn }) => (pipeline[`${which}Us`] - inTurn[`${which}Us`]) / 1000),
        oracle: [],
        goal: { kind: "at most", of: "ours", value: max },
      });
      return [measure("p50", 1), measure("p99", 2.5)];
    } finally {
      for (const each of containers) await each.stop();
    }
  },
};
