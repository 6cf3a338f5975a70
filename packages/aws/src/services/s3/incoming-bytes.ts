import { Readable } from "node:stream";
import type { S3Request } from "./s3-request.ts";

/** A few of Node's chunks of 64 KiB. */
const chunksMax = 4;

/**
 * Releases a chunk's memory at once. Otherwise the chunks of a large body are garbage outside of the heap, for which
 * the collector marks the whole heap every 30 MiB: a fifth of an upload's CPU time (bench/rows/upload.ts).
 */
export function freeChunk(chunk: Buffer): void {
  // A slice shares its memory with others.
  if (chunk.buffer instanceof ArrayBuffer && chunk.byteLength === chunk.buffer.byteLength) chunk.buffer.transfer(0);
}

/**
 * Returns a request's bytes as a stream. Reading starts when the stream is read: only then a client that waits for `100
 * Continue` is told to send. Destroying the stream keeps the connection for its response; further input is read and
 * dropped. The request itself is not iterated: Node's iterator would destroy its connection on an early end, or leave
 * it unreadable.
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
    // Object mode keeps the chunks: a stream of bytes would join them.
    objectMode: true,
    highWaterMark: chunksMax,
    read: () => (isOpen ? void incoming.resume() : open()),
    destroy(error, done) {
      leave();
      incoming.resume();
      done(error);
    },
  });
  // The reader gets the error; without a listener it would end the process when nothing reads.
  body.on("error", () => undefined);
  const take = (chunk: Buffer) => {
    if (!body.push(chunk)) incoming.pause();
  };
  const leave = () => incoming.off("data", take).off("end", end).off("error", fail).off("close", cut);
  const end = () => {
    leave();
    body.push(null);
  };
  const fail = (error: Error) => void body.destroy(error);
  const cut = () => fail(new Error("the body was cut short"));
  return body;
}
