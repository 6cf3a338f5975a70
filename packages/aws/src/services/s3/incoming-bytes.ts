import { Readable } from "node:stream";
import type { S3Request } from "./s3-request.ts";

/** A few of node's chunks of 64 KiB. */
const chunksMax = 4;

/**
 * Gives a chunk's memory back at once. Left to the collector, the chunks of a large body are garbage outside its heap, for which it
 * marks the whole heap every 30 MiB: a fifth of the processor time of an upload (bench/rows/upload.ts).
 */
export function freeChunk(chunk: Buffer): void {
  // A slice shares its memory with others.
  if (chunk.buffer instanceof ArrayBuffer && chunk.byteLength === chunk.buffer.byteLength) chunk.buffer.transfer(0);
}

/**
 * A request's bytes as they come. Reading starts when the stream is read: only then is a client that waits for `100 Continue` told
 * to send. Destroying the stream leaves the connection to its answer; what is still to come is read and dropped. The request itself
 * is given to no iterator: one of node's that ends early takes the connection away from it, or leaves it unreadable.
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
    // Chunks stay as they came: a stream of bytes would join those it holds.
    objectMode: true,
    highWaterMark: chunksMax,
    read: () => (isOpen ? void incoming.resume() : open()),
    destroy(error, done) {
      leave();
      incoming.resume();
      done(error);
    },
  });
  // What ends it early is told where it is read; a client that goes at another moment must not end the process.
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
  const cut = () => fail(new Error("the body ended before its end"));
  return body;
}
