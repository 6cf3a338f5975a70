import { execFile } from "node:child_process";
import { cp, readFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { cacheDirectory, ensureEnvironment } from "../../conformance/environments/index.ts";
import { packDirectory } from "../archive.ts";
import { requestOk } from "../send-request.ts";
import { runLoad, type LoadResult } from "../load.ts";
import { endpointHeaders, invocationBytes, startPlatform, type Platform } from "../platform.ts";
import type { BenchContext, Measure } from "../row.ts";
import { temporaryDirectory } from "../servers.ts";

const training = fileURLToPath(new URL("../../examples/reading/train.py", import.meta.url));
const steps = ["quality", "recognition", "topic"] as const;

/** Quality, recognition and topic of examples/reading in sequence: as an inference pipeline of three containers, and as one ensemble in one container. */
export const pipelineEnsembleRow = {
  name: "pipeline-ensemble",
  async measure(context: BenchContext): Promise<Measure[]> {
    await using data = await temporaryDirectory();
    const { repository, bodies } = await trained(data.path);
    await using platform = await startPlatform(join(data.path, "platform"));
    const containers = [];
    for (const step of steps) containers.push(await container(platform, repository, [step]));
    await platform.createPipeline("three", containers);
    await platform.createPipeline("one", [await container(platform, repository, ["reading", ...steps])]);
    for (const body of bodies) {
      const [three, one] = [await answerOf(platform, "three", body), await answerOf(platform, "one", body)];
      if (three !== one) throw new Error(`the pipeline answers ${three}, and the ensemble ${one}`);
    }
    const [body] = bodies;
    if (body === undefined) throw new Error("nothing was made to ask with");
    const measures: Measure[] = [];
    for (const clients of [1, 8]) measures.push(...(await compare(context, { port: platform.port, body, clients })));
    return measures;
  },
};

/** The models of the example, and readable and unreadable requests for them. */
async function trained(
  directory: string,
): Promise<{ readonly repository: string; readonly bodies: readonly Buffer[] }> {
  const { python } = await ensureEnvironment(cacheDirectory(process.env), "trees");
  const [repository, file] = [join(directory, "models"), join(directory, "strips.json")];
  await promisify(execFile)(python, [training, "write", repository, file]);
  const strips = JSON.parse(await readFile(file, "utf8")) as readonly (readonly number[])[];
  // The first strip is unreadable, so the later steps would have little work.
  const requested = [...strips.slice(1), ...strips.slice(0, 1)];
  return { repository, bodies: requested.map((strip) => Buffer.from(JSON.stringify({ PIXELS: strip }))) };
}

async function container(platform: Platform, repository: string, models: readonly [string, ...string[]]) {
  await using chosen = await temporaryDirectory();
  for (const model of models) await cp(join(repository, model), join(chosen.path, model), { recursive: true });
  const key = `reading/${models[0]}.tar.gz`;
  await platform.putObject(key, await packDirectory(chosen.path));
  const environment = {
    SAGEMAKER_TRITON_INFERENCE_TYPE: "generate",
    SAGEMAKER_TRITON_DEFAULT_MODEL_NAME: models[0],
  };
  return { key, environment };
}

/** Removes the fields of the response that depend on the model's name. */
async function answerOf(platform: Platform, endpoint: string, body: Buffer): Promise<string> {
  const response = await requestOk(platform.port, "POST", `/endpoints/${endpoint}/invocations`, body, endpointHeaders);
  const { TOPIC, SCORES } = JSON.parse(response.toString()) as { TOPIC?: string; SCORES?: number[] };
  if (TOPIC === undefined || SCORES === undefined) throw new Error(`no topic: ${response.toString()}`);
  return JSON.stringify([TOPIC, SCORES]);
}

interface Load {
  readonly port: number;
  readonly body: Buffer;
  readonly clients: number;
}

/** Alternating rounds; the figures of `oracle` are those of the pipeline. */
async function compare(context: BenchContext, { port, body, clients }: Load): Promise<Measure[]> {
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
