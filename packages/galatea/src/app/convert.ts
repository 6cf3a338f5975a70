import { mkdtemp, rm, stat } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import { DiskError, makeDirectory, systemClock, unreachable } from "@galatea/base";
import {
  addToRepository,
  buildPlan,
  ConversionError,
  convertEncoder,
  encoderShapes,
  onnxFileBytesMax,
  planBuilder,
  type ConvertedEncoder,
} from "@galatea/tools/conversion";
import type { ConvertOptions } from "../options/index.ts";
import { installerEnvironment } from "./passed-environment.ts";
import { stopSignal } from "./stop-signal.ts";

const namesTold = 5;
const say = (line: string) => void process.stdout.write(`${line}\n`);
const warn = (line: string) => void process.stderr.write(`galatea convert: ${line}\n`);

/** `galatea convert`: writes the model, or the model with its configuration. Prints what was made; 1 with a sentence where it was not. */
export async function convert(options: ConvertOptions): Promise<number> {
  using stop = stopSignal();
  const stopping = new AbortController();
  void stop.stopped.then(() => stopping.abort());
  try {
    const found = await stat(resolve(options.source)).catch(() => null);
    if (found === null) throw new ConversionError(`'${resolve(options.source)}' is not there`);
    if (found.isDirectory()) await fromDirectory(options, stopping.signal);
    else await fromFile(options, stopping.signal);
    return 0;
  } catch (error) {
    if (stopping.signal.aborted) {
      warn("stopped; nothing was written");
      return 1;
    }
    if (!(error instanceof ConversionError || error instanceof DiskError)) throw error;
    warn(error.message);
    return 1;
  }
}

async function fromDirectory(options: ConvertOptions, signal: AbortSignal): Promise<void> {
  const { to, plan, batchMax } = options;
  const write = plan === null ? onnxWriter(options, signal) : await planWriter(options, plan, signal);
  switch (to.kind) {
    case "file":
      tell(resolve(to.path), await write(resolve(to.path)));
      return;
    case "repository": {
      const [file, backend] = plan === null ? ["model.onnx", "onnxruntime"] : ["model.plan", "tensorrt"];
      const converted = await addToRepository({ ...to, file }, async (target) => {
        const written = await write(target);
        const { inputs, outputs } = written;
        return { written, description: { backend, inputs, outputs, batchMax } };
      });
      tell(resolve(to.repository, to.name), converted);
      return;
    }
    default:
      unreachable(to);
  }
}

type Write = (target: string) => Promise<ConvertedEncoder>;

function onnxWriter({ source, graph }: ConvertOptions, signal: AbortSignal): Write {
  return (target) =>
    convertEncoder({ ...graph, source: resolve(source), target, fileBytesMax: onnxFileBytesMax, signal });
}

/** By way of an ONNX file of ONNX's own operators in single precision, which TensorRT reads; what is computed in halves is its choice. */
async function planWriter(
  options: ConvertOptions,
  plan: NonNullable<ConvertOptions["plan"]>,
  signal: AbortSignal,
): Promise<Write> {
  const builder = await builderOf(options, signal);
  const graph = { ...options.graph, operators: "standard", weights: "FLOAT" } as const;
  return async (target) => {
    await makeDirectory(dirname(target));
    const making = await mkdtemp(join(dirname(target), ".onnx-"));
    try {
      const source = join(making, "model.onnx");
      const converted = await onnxWriter({ ...options, graph }, signal)(source);
      const longest = Math.min(plan.tokensMax ?? converted.tokensMax, converted.tokensMax);
      const names = converted.inputs.map(({ name }) => name);
      const shapes = encoderShapes(names, options.batchMax, longest);
      const { byteLength } = await buildPlan({ ...builder, source, target, shapes });
      return { ...converted, tokensMax: longest, byteLength, dataFile: null };
    } finally {
      await rm(making, { recursive: true, force: true });
    }
  };
}

async function builderOf({ graph }: ConvertOptions, signal: AbortSignal) {
  const env = installerEnvironment();
  const command = await planBuilder(env["PATH"] ?? "");
  return { command, env, halfPrecision: graph.weights === "FLOAT16", onProgress: say, clock: systemClock, signal };
}

async function fromFile(options: ConvertOptions, signal: AbortSignal): Promise<void> {
  const { to, plan } = options;
  const source = resolve(options.source);
  if (!source.endsWith(".onnx"))
    throw new ConversionError(`'${source}' is neither a directory with config.json and weights nor an ONNX file`);
  if (plan === null || to.kind !== "file")
    throw new ConversionError(`'${source}' is an ONNX file already; what can be made of it is a plan: <file>.plan`);
  const target = resolve(to.path);
  const { byteLength } = await buildPlan({
    ...(await builderOf(options, signal)),
    source,
    target,
    shapes: plan.shapes,
  });
  say(`${target}: ${mebibytes(byteLength)}`);
}

function tell(path: string, converted: ConvertedEncoder): void {
  const { architecture, inputs, outputs, tokensMax, byteLength, dataFile, left } = converted;
  const names = (tensors: ConvertedEncoder["inputs"]) => tensors.map(({ name }) => name).join(", ");
  say(`${path}: ${architecture}, ${mebibytes(byteLength)}${dataFile === null ? "" : " with its .data"}`);
  say(`inputs ${names(inputs)}, up to ${tokensMax} tokens; outputs ${names(outputs)}`);
  if (left.length === 0) return;
  const more = left.length > namesTold ? `, and ${left.length - namesTold} more` : "";
  warn(`only the encoder is converted; left out: ${left.slice(0, namesTold).join(", ")}${more}`);
}

function mebibytes(bytes: number): string {
  return `${Math.ceil(bytes / 2 ** 20)} MiB`;
}
