import type { YieldOptions } from "@galatea/base";
import { type JsonDataPrinting, JsonScanner, JsonWalk } from "../../tensor/index.ts";
import { parsingRequestJson } from "./json-access.ts";

/**
 * JSON longer than this is read and printed in pieces, between which others have their turn: 150,528 numbers, a picture of 3x224x224, take
 * 8 ms to read and up to 20 ms to print (bench/rows/json-numbers.ts).
 */
export const wholeTextBytesMax = 128 * 1024;
/** Of JSON that is read: 0.2 ms at most. */
export const readChunkBytes = 64 * 1024;
/** Of a tensor of numbers that is printed: about 0.5 ms of FP32, which are the slowest. */
const numbersPieceBytes = 16 * 1024;
/** Of one of strings: about as long. */
const stringsPieceBytes = 256 * 1024;

/** Calls `advance` once a turn until it is true. Rejects with what it throws, and with the signal's reason once that is aborted. */
export async function inChunks({ loopQueue, signal }: YieldOptions, advance: () => boolean): Promise<void> {
  do await loopQueue.next(signal);
  while (!advance());
}

/** Prints a tensor, a piece a turn. */
export async function printInChunks(of: YieldOptions, printing: JsonDataPrinting): Promise<void> {
  const pieceBytes = printing.datatype === "BYTES" ? stringsPieceBytes : numbersPieceBytes;
  await inChunks(of, () => printing.advance(pieceBytes));
}

/** A scanner of a request's whole JSON that steps over its long parts at once. Rejects with Triton's words for what is no JSON. */
export async function walkedDocument(bytes: Uint8Array, of: YieldOptions): Promise<JsonScanner> {
  const scanner = new JsonScanner(bytes);
  const walk = new JsonWalk(scanner);
  await inChunks(of, () => parsingRequestJson(() => walk.advance(readChunkBytes)));
  return scanner;
}
