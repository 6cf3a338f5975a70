import type { Readable } from "node:stream";
import type { InvocationReply } from "./invocation.ts";

/**
 * Maximum bytes of a chunk. A client that reads a kilobyte per second still receives a chunk within the limit for
 * connections without progress.
 */
const partBytesMax = 16 * 1024;

/**
 * Yields a streamed response in chunks of up to 16 KiB. Each chunk contains all data since the previous one, so that
 * many small writes become few chunks. Data is read on demand, so that back pressure slows the container. Ending the
 * iteration early cancels the response. Throws the error that `reply.failed` returns.
 */
export async function* responseChunks(reply: InvocationReply): AsyncGenerator<Buffer, void> {
  const { body, onStart: started, done, failed } = reply;
  if (Buffer.isBuffer(body)) throw new Error("bug: the response was not requested as a stream");
  let hasStarted = false;
  try {
    for await (const chunk of bufferedChunks(body)) {
      if (!hasStarted) started();
      hasStarted = true;
      yield chunk;
    }
  } catch (error) {
    throw failed(error);
  } finally {
    body.destroy();
    done();
  }
}

async function* bufferedChunks(source: Readable): AsyncGenerator<Buffer, void> {
  let wake: (() => void) | null = null;
  const changed = () => wake?.();
  let error: Error | null = null;
  source.on("error", (thrown: Error) => {
    error = thrown;
    changed();
  });
  source.on("readable", changed).on("end", changed).on("close", changed);
  try {
    for (;;) {
      const { promise, resolve } = Promise.withResolvers<void>();
      wake = resolve;
      const chunk = source.read(Math.min(source.readableLength, partBytesMax)) as Buffer | null;
      if (chunk !== null) {
        yield chunk;
        continue;
      }
      if (source.readableEnded) return;
      if (error !== null || source.destroyed) throw error ?? new Error("the response was cut short");
      await promise;
    }
  } finally {
    source.off("readable", changed).off("end", changed).off("close", changed);
  }
}
