import type { YieldOptions } from "@galatea/base";
import { type JsonDataPrinting, JsonScanner, JsonWalk } from "../../tensor/index.ts";
import { parsingRequestJson } from "./json-access.ts";

/**
 * Longer JSON is read and printed in chunks, between which the event loop runs: 150,528 numbers, a picture of 3x224x224, take 8 ms to
 * read and up to 20 ms to print (bench/rows/json-numbers.ts).
 */
export const wholeTextBytesMax = 128 * 1024;
/** Chunk of JSON that is read: 0.2 ms at most. */
export const readChunkBytes = 64 * 1024;
/** Chunk of a numeric tensor that is printed: about 0.5 ms of FP32, which is the slowest. */
const numbersPieceBytes = 16 * 1024;
/** Chunk of a string tensor that is printed: about as long. */
const stringsPieceBytes = 256 * 1024;

/** Calls `advance` once per event loop tick until it returns true. Rejects with its exception, and with the signal's reason. */
export async function inChunks({ loopQueue, signal }: YieldOptions, advance: () => boolean): Promise<void> {
  do await loopQueue.next(signal);
  while (!advance());
}

/** Prints a tensor, one chunk per event loop tick. */
export async function printInChunks(of: YieldOptions, printing: JsonDataPrinting): Promise<void> {
  const pieceBytes = printing.datatype === "BYTES" ? stringsPieceBytes : numbersPieceBytes;
  await inChunks(of, () => printing.advance(pieceBytes));
}

/** Checks a request's whole JSON and returns a scanner that skips its long parts at once. Rejects with Triton's text for invalid JSON. */
export async function walkedDocument(bytes: Uint8Array, of: YieldOptions): Promise<JsonScanner> {
  const scanner = new JsonScanner(bytes);
  const walk = new JsonWalk(scanner);
  await inChunks(of, () => parsingRequestJson(() => walk.advance(readChunkBytes)));
  return scanner;
}
