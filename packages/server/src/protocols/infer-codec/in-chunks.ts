import type { YieldOptions } from "@galatea/base";
import { type JsonDataPrinter, JsonScanner, JsonWalk } from "../../tensor/index.ts";
import { parsingRequestJson } from "./json-access.ts";

/**
 * JSON of this length and more is read and printed in chunks, with event loop ticks between them. The 150,528 numbers of a 3x224x224
 * picture take 8 ms to read and up to 20 ms to print (bench/rows/json-numbers.ts).
 */
export const wholeTextBytesMax = 128 * 1024;
/** Size of a chunk of JSON that is read; it takes at most 0.2 ms. */
export const readChunkBytes = 64 * 1024;
/** Size of a chunk of a numeric tensor that is printed; FP32, the slowest, takes about 0.5 ms. */
const numbersChunkBytes = 16 * 1024;
/** Size of a chunk of a string tensor that is printed; it takes about as long. */
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
  const pieceBytes = printing.datatype === "BYTES" ? stringsChunkBytes : numbersChunkBytes;
  await runInChunks(of, () => printing.advance(pieceBytes));
}

/**
 * Checks the JSON of a request in chunks. Resolves with a scanner that has recorded its long arrays and objects, and skips each of them at
 * once. Rejects with Triton's text for invalid JSON.
 */
export async function scanInChunks(bytes: Uint8Array, of: YieldOptions): Promise<JsonScanner> {
  const scanner = new JsonScanner(bytes);
  const walk = new JsonWalk(scanner);
  await runInChunks(of, () => parsingRequestJson(() => walk.advance(readChunkBytes)));
  return scanner;
}
