import { stat } from "node:fs/promises";
import { resolve } from "node:path";
import { DiskError, unreachable } from "../base/index.ts";
import {
  addToRepository,
  ConversionError,
  convertEncoder,
  onnxFileBytesMax,
  type ConvertedEncoder,
} from "../conversion/index.ts";
import type { ConvertOptions } from "./options.ts";
import { stopSignal } from "./stop-signal.ts";

const namesTold = 5;

/** `galatea convert`: writes the ONNX file, or the model with its configuration. Prints what was made; 1 with a sentence where it was not. */
export async function convert(options: ConvertOptions): Promise<number> {
  using stop = stopSignal();
  const stopping = new AbortController();
  void stop.stopped.then(() => stopping.abort());
  try {
    const { path, converted } = await make(options, stopping.signal);
    const { architecture, inputs, outputs, tokensMax, byteLength, dataFile, left } = converted;
    const names = (tensors: ConvertedEncoder["inputs"]) => tensors.map(({ name }) => name).join(", ");
    const say = (line: string) => void process.stdout.write(`${line}\n`);
    say(
      `${path}: ${architecture}, ${Math.ceil(byteLength / 2 ** 20)} MiB${dataFile === null ? "" : " with its .data"}`,
    );
    say(`inputs ${names(inputs)}, up to ${tokensMax} tokens; outputs ${names(outputs)}`);
    if (left.length > 0) {
      const more = left.length > namesTold ? `, and ${left.length - namesTold} more` : "";
      process.stderr.write(
        `galatea convert: only the encoder is converted; left out: ${left.slice(0, namesTold).join(", ")}${more}\n`,
      );
    }
    return 0;
  } catch (error) {
    if (stopping.signal.aborted) {
      process.stderr.write("galatea convert: stopped; nothing was written\n");
      return 1;
    }
    if (!(error instanceof ConversionError || error instanceof DiskError)) throw error;
    process.stderr.write(`galatea convert: ${error.message}\n`);
    return 1;
  }
}

async function make(
  options: ConvertOptions,
  signal: AbortSignal,
): Promise<{ readonly path: string; readonly converted: ConvertedEncoder }> {
  const source = resolve(options.source);
  const found = await stat(source).catch(() => null);
  if (found === null) throw new ConversionError(`'${source}' is not there`);
  if (!found.isDirectory())
    throw new ConversionError(`'${source}' is no directory; what is converted is one with config.json and weights`);
  const { graph, to } = options;
  const written = (target: string) =>
    convertEncoder({ ...graph, source, target, fileBytesMax: onnxFileBytesMax, signal });
  switch (to.kind) {
    case "file":
      return { path: resolve(to.path), converted: await written(resolve(to.path)) };
    case "repository": {
      const converted = await addToRepository({ ...to, file: "model.onnx" }, async (target) => {
        const made = await written(target);
        const { inputs, outputs } = made;
        return { written: made, description: { backend: "onnxruntime", inputs, outputs, batchMax: to.batchMax } };
      });
      return { path: resolve(to.repository, to.name), converted };
    }
    default:
      return unreachable(to);
  }
}
