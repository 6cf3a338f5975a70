import type { Readable } from "node:stream";
import type { InvocationReply } from "./invocation.ts";

/** A client that takes a kilobyte a second takes a part well within the time that connections may be without progress. */
const partBytesMax = 16 * 1024;

/**
 * A streamed answer for one `for await`: each part is what has come since the one before, up to a bound, so a million tiny pieces are few
 * parts. What is not asked for is not read, and holds the container up. Who stops before the end gives the answer up. An error is what
 * `reply.failed` makes of it.
 */
export async function* answerParts(reply: InvocationReply): AsyncGenerator<Buffer, void> {
  const { body, begun, done, failed } = reply;
  if (Buffer.isBuffer(body)) throw new Error("bug: the answer was not asked for as a stream");
  let hasBegun = false;
  try {
    for await (const part of whatHasCome(body)) {
      if (!hasBegun) begun();
      hasBegun = true;
      yield part;
    }
  } catch (error) {
    throw failed(error);
  } finally {
    body.destroy();
    done();
  }
}

async function* whatHasCome(source: Readable): AsyncGenerator<Buffer, void> {
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
      const part = source.read(Math.min(source.readableLength, partBytesMax)) as Buffer | null;
      if (part !== null) {
        yield part;
        continue;
      }
      if (source.readableEnded) return;
      if (error !== null || source.destroyed) throw error ?? new Error("the answer ended before its end");
      await promise;
    }
  } finally {
    source.off("readable", changed).off("end", changed).off("close", changed);
  }
}
