import type { YieldOptions } from "@galatea/base";
import { type JsonDataPrinter, JsonScanner, JsonWalk } from "../../tensor/index.ts";
import { parsingRequestJson } from "./json-access.ts";

/**
 * Maximum length of JSON that is read or printed in one event loop tick. Longer JSON is processed in chunks, one in each tick. The 150,528
 * numbers of a 3x224x224 picture take 8 ms to read and up to 20 ms to print (bench/rows/json-numbers.ts).
 */
export const wholeTextBytesMax = 128 * 1024;
/** Size of a chunk of JSON that is read; reading a chunk takes at most 0.2 ms. */
export const readChunkBytes = 64 * 1024;
/** Size of a chunk of a numeric tensor that is printed. FP32, the slowest datatype, takes about 0.5 ms. */
const numbersChunkBytes = 16 * 1024;
/** Size of a chunk of a string tensor that is printed, which also takes about 0.5 ms. */
const stringsChunkBytes = 256 * 1024;

/**
 * Calls `advance` once in each event loop tick until it returns true. Rejects with an exception of `advance`, or with the signal's reason.
 */
export async function runInChunks({ loopQueue, signal }: YieldOptions, advance: () => boolean): Promise<void> {
  do await loopQueue.next(signal);
  while (!advance());
}

/** Prints a tensor, one chunk in each event loop tick. */
export async function printInChunks(of: YieldOptions, printing: JsonDataPrinter): Promise<void> {
  const chunkBytes = printing.datatype === "BYTES" ? stringsChunkBytes : numbersChunkBytes;
  await runInChunks(of, () => printing.advance(chunkBytes));
}

/**
 * Checks the JSON of a request in chunks. Resolves with a scanner that has recorded the ends of long arrays and objects, so that it can
 * skip each of them in one step. Rejects with Triton's text for invalid JSON.
 */
export async function scanInChunks(bytes: Uint8Array, of: YieldOptions): Promise<JsonScanner> {
  const scanner = new JsonScanner(bytes);
  const walk = new JsonWalk(scanner);
  await runInChunks(of, () => parsingRequestJson(() => walk.advance(readChunkBytes)));
  return scanner;
}
