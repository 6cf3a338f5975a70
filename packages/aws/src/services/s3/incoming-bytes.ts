import { Readable } from "node:stream";
import type { S3Request } from "./s3-request.ts";

/** Number of chunks of up to 64 KiB that the stream buffers. */
const chunksMax = 4;

/**
 * Releases a chunk's memory at once. Chunks of a large body that wait for the garbage collector are memory outside of
 * the heap. For every 30 MiB of them the collector marks the whole heap, which is a fifth of an upload's CPU time
 * (bench/rows/upload.ts).
 */
export function freeChunk(chunk: Buffer): void {
  // A slice must not be freed, because other slices share its memory.
  if (chunk.buffer instanceof ArrayBuffer && chunk.byteLength === chunk.buffer.byteLength) chunk.buffer.transfer(0);
}

/**
 * Returns a request's bytes as a stream. Reading starts when the stream is read: only then does a client that waits for
 * `100 Continue` receive it. Destroying the stream keeps the connection open for the response, and drops further input.
 * Iterating over the request itself would not do: on an early end, Node's iterator destroys the connection or leaves it
 * unreadable.
 */
export function incomingBytes({ incoming, response, headers }: S3Request): Readable {
  let isOpen = false;
  const open = () => {
    isOpen = true;
    if (headers["expect"]?.toLowerCase() === "100-continue") response.writeContinue();
    incoming.on("data", take).on("end", end).on("error", fail).on("close", cut);
    if (incoming.destroyed) cut();
  };
  const body = new Readable({
    // In object mode, the stream keeps chunks separate; a byte stream may join them, which copies.
    objectMode: true,
    highWaterMark: chunksMax,
    read: () => (isOpen ? void incoming.resume() : open()),
    destroy(error, done) {
      disconnect();
      incoming.resume();
      done(error);
    },
  });
  // The reader receives the error. Without a listener, an error that occurs while nothing reads would end the process.
  body.on("error", () => undefined);
  const take = (chunk: Buffer) => {
    if (!body.push(chunk)) incoming.pause();
  };
  const disconnect = () => incoming.off("data", take).off("end", end).off("error", fail).off("close", cut);
  const end = () => {
    disconnect();
    body.push(null);
  };
  const fail = (error: Error) => void body.destroy(error);
  const cut = () => fail(new Error("the body was cut short"));
  return body;
}
