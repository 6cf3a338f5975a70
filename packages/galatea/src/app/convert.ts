import { stat } from "node:fs/promises";
import { resolve } from "node:path";
import { DiskError, unreachable } from "@galatea/base";
import {
  addToRepository,
  ConversionError,
  convertEncoder,
  onnxFileBytesMax,
  type ConvertedEncoder,
} from "@galatea/tools/conversion";
import type { ConvertOptions } from "../options/index.ts";
import { stopSignal } from "./stop-signal.ts";

const namesShown = 5;
const printLine = (line: string) => void process.stdout.write(`${line}\n`);
const warn = (line: string) => void process.stderr.write(`galatea convert: ${line}\n`);

/**
 * Runs `galatea convert`, which writes the model, or the model with its configuration. Prints a summary. On failure,
 * prints the error and resolves with 1.
 */
export async function convert(options: ConvertOptions): Promise<number> {
  using stop = stopSignal();
  const stopping = new AbortController();
  void stop.stopped.then(() => stopping.abort());
  try {
    const found = await stat(resolve(options.source)).catch(() => null);
    if (found === null) throw new ConversionError(`'${resolve(options.source)}' does not exist`);
    if (!found.isDirectory())
      throw new ConversionError(`'${resolve(options.source)}' is not a directory with config.json and weights`);
    await write(options, stopping.signal);
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

async function write(options: ConvertOptions, signal: AbortSignal): Promise<void> {
  const { source, graph, to, batchMax } = options;
  const writeTo = (target: string) =>
    convertEncoder({ ...graph, source: resolve(source), target, fileBytesMax: onnxFileBytesMax, signal });
  switch (to.kind) {
    case "file":
      printSummary(resolve(to.path), await writeTo(resolve(to.path)));
      return;
    case "repository":
      printSummary(resolve(to.repository, to.name), await addToRepository(to, batchMax, writeTo));
      return;
    default:
      unreachable(to);
  }
}

function printSummary(path: string, converted: ConvertedEncoder): void {
  const { architecture, inputs, outputs, tokensMax, byteLength, dataFile, left } = converted;
  const names = (tensors: ConvertedEncoder["inputs"]) => tensors.map(({ name }) => name).join(", ");
  printLine(`${path}: ${architecture}, ${mebibytes(byteLength)}${dataFile === null ? "" : " with its .data"}`);
  printLine(`inputs ${names(inputs)}, up to ${tokensMax} tokens; outputs ${names(outputs)}`);
  if (left.length === 0) return;
  const more = left.length > namesShown ? `, and ${left.length - namesShown} more` : "";
  warn(`only the encoder is converted; left out: ${left.slice(0, namesShown).join(", ")}${more}`);
}

function mebibytes(bytes: number): string {
  return `${Math.ceil(bytes / 2 ** 20)} MiB`;
}
