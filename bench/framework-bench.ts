import { execFile } from "node:child_process";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { ensureFramework, type FrameworkName, type RunningServer } from "../conformance/environments/index.ts";
import { requestOk, timedMs } from "./send-request.ts";
import { requestBytes, runLoad } from "./load.ts";
import { treeMemory } from "./processes.ts";
import { median, type BenchContext, type Measure, type Row } from "./row.ts";
import { alternate, alternateAll, startPairOver, temporaryDirectory, type Pair } from "./servers.ts";

const run = promisify(execFile);
const requestsPerModel = 10;

/** Models of a framework, which a script of `bench/models` writes for our server and for Triton's Python backend: many small ones and a large one. */
export interface FrameworkBench {
  readonly framework: FrameworkName;
  /** The name of the framework in the names of measurements. */
  readonly label: string;
  readonly library: string;
  /** Writes `mlp_0` to `mlp_<count - 1>`, of 64 numbers each, and the large one. */
  readonly writer: string;
  /** The models' one input. */
  readonly input: string;
  /** Names of the measurements of a small model: of its load and of its responses. */
  readonly small: { readonly loaded: string; readonly requested: string };
  readonly large: {
    readonly model: string;
    readonly shape: readonly number[];
    readonly loaded: string;
    readonly requested: string;
  };
  /** Small models, for which Triton's backend is measured as well. */
  readonly count: number;
}

/** One row of random numbers, binary in both directions. */
function request(input: string, model: string, shape: readonly number[]): Uint8Array {
  const data = Float32Array.from({ length: shape.reduce((a, b) => a * b, 1) }, () => Math.random());
  const header = Buffer.from(
    JSON.stringify({
      inputs: [
        {
          name: input,
          datatype: "FP32",
          shape: [1, ...shape],
          parameters: { binary_data_size: data.byteLength },
        },
      ],
      parameters: { binary_data_output: true },
    }),
  );
  const body = Buffer.concat([header, new Uint8Array(data.buffer)]);
  const headers = { "inference-header-content-length": String(header.length) };
  return requestBytes(`/v2/models/${model}/infer`, body, headers);
}

/** Sends this many requests to a model, one after another. */
async function call(server: RunningServer, model: string, input: string): Promise<void> {
  const body = Buffer.from(
    JSON.stringify({
      inputs: [{ name: input, datatype: "FP32", shape: [1, 64], data: Array.from({ length: 64 }, () => 1) }],
    }),
  );
  for (let each = 0; each < requestsPerModel; each++)
    await requestOk(server.httpPort, "POST", `/v2/models/${model}/infer`, body);
}

/** Models served by us and by Triton's Python backend, with the same library. */
export function frameworkRow(bench: FrameworkBench): Row {
  return { name: bench.framework, measure: (context) => measure(context, bench) };
}

async function measure(context: BenchContext, bench: FrameworkBench): Promise<Measure[]> {
  const { small, large } = bench;
  const writer = fileURLToPath(new URL(`models/${bench.writer}`, import.meta.url));
  const { python } = await ensureFramework(bench.framework);
  const packages = (await run(python, ["-c", "import sysconfig; print(sysconfig.get_path('purelib'))"])).stdout.trim();
  await using directory = await temporaryDirectory();
  const count = context.quick ? 3 : bench.count;
  await run(python, [writer, directory.path, String(count), packages]);
  const repositories = { galatea: join(directory.path, "galatea"), oracle: join(directory.path, "oracle") };
  await using pair = await startPairOver(
    context,
    repositories,
    { flags: ["--model-control-mode=explicit", "--load-model=mlp_0", `--load-model=${large.model}`] },
    async () => {},
  );
  return [
    ...(await loads(context, pair, bench)),
    ...(await throughput(context, pair, { model: "mlp_0", shape: [64], requested: small.requested }, bench.input)),
    ...(await throughput(context, pair, large, bench.input)),
    await memory(context, pair, count, bench),
  ];
}

async function loads(
  context: BenchContext,
  pair: Pair,
  { label, library, small, large }: FrameworkBench,
): Promise<Measure[]> {
  const measures: Measure[] = [];
  for (const model of ["mlp_1", large.model]) {
    const figures = await alternate(context, pair, `load of ${model}`, async (server) => {
      const found: number[] = [];
      for (let load = 0; load < (server.kind === "oracle" ? 1 : 3); load++) {
        await requestOk(server.httpPort, "POST", `/v2/repository/models/${model}/unload`);
        found.push(await timedMs(() => requestOk(server.httpPort, "POST", `/v2/repository/models/${model}/load`)));
      }
      return median(found);
    });
    const what = model === large.model ? large.loaded : small.loaded;
    measures.push({
      what: `${label}: load of ${what}, ${library} warm`,
      unit: "ms",
      ...figures,
      goal: { kind: "at most", of: "ratio", value: 1 },
    });
  }
  return measures;
}

async function throughput(
  context: BenchContext,
  pair: Pair,
  { model, shape, requested: what }: Pick<FrameworkBench["large"], "model" | "shape" | "requested">,
  input: string,
): Promise<Measure[]> {
  const requested = request(input, model, shape);
  const measures: Measure[] = [];
  for (const clients of [1, 8, 32]) {
    const figures = await alternateAll(
      context,
      pair,
      [`${model} at ${clients}`, `${model} at ${clients}, p50`],
      async (server) => {
        const durations = context.quick ? { durationMs: 3000, warmUpMs: 300 } : { durationMs: 4000, warmUpMs: 2000 };
        const result = await runLoad({ port: server.httpPort, request: requested, clients, ...durations });
        return [result.perSecond, result.p50Us];
      },
    );
    const [perSecond, p50] = figures;
    measures.push({
      what: `${what}: throughput at ${clients}`,
      unit: "/s",
      ...perSecond!,
      goal: { kind: "at least", of: "ratio", value: 1 },
    });
    if (clients === 1)
      measures.push({
        what: `${what}: p50 at 1`,
        unit: "us",
        ...p50!,
        goal: { kind: "at most", of: "ratio", value: 1 },
      });
  }
  return measures;
}

/** Private pages of each additional model after ten responses. The weights of these models have 0.1 MB. */
async function memory(
  context: BenchContext,
  { galatea, oracle }: Pair,
  count: number,
  { label, input }: FrameworkBench,
): Promise<Measure> {
  const perModel = async (server: RunningServer) => {
    await call(server, "mlp_0", input);
    const before = await treeMemory(server.pid);
    for (let model = 2; model < count; model++) {
      await requestOk(server.httpPort, "POST", `/v2/repository/models/mlp_${model}/load`);
      await call(server, `mlp_${model}`, input);
    }
    const after = await treeMemory(server.pid);
    context.log(
      `${server.kind}: ${after.processCount} processes, ${(after.proportionalBytes / 1e6).toFixed(0)} MB proportional`,
    );
    return (after.privateBytes - before.privateBytes) / (count - 2) / 1e6;
  };
  return {
    what: `${label}: private memory of a further model after ten requests`,
    unit: "MB",
    ours: [await perModel(galatea)],
    oracle: [await perModel(oracle)],
    goal: { kind: "at most", of: "ours", value: 30 },
  };
}
