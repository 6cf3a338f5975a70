import type { Readable } from "node:stream";

/**
 * Reads a body of at most `bytesMax` bytes to one buffer. A body that arrives in one chunk is not copied. Rejects with
 * `tooLong()` as soon as the body is known to be longer, and then reads no further. `take` reserves memory for each
 * chunk, and throws to reject the body. This is cheaper than iterating over the stream, which matters because every
 * request calls it.
 */
export function readToBuffer(
  source: Readable,
  bytesMax: number,
  tooLong: () => Error,
  take: ((bytes: number, chunk: Buffer) => void) | null = null,
): Promise<Buffer> {
  const { promise, resolve, reject } = Promise.withResolvers<Buffer>();
  const chunks: Buffer[] = [];
  let byteLength = 0;
  const disconnect = () => source.off("data", keep).off("end", end).off("error", fail).off("close", cut);
  const keep = (chunk: Buffer) => {
    byteLength += chunk.byteLength;
    if (byteLength > bytesMax) return fail(tooLong());
    try {
      take?.(chunk.byteLength, chunk);
    } catch (error) {
      return fail(error as Error);
    }
    chunks.push(chunk);
  };
  const end = () => {
    disconnect();
    const [only] = chunks;
    resolve(chunks.length === 1 && only !== undefined ? only : Buffer.concat(chunks, byteLength));
  };
  const fail = (error: Error) => {
    disconnect().pause();
    reject(error);
  };
  const cut = () => fail(new Error("the body is incomplete"));
  source.on("data", keep).on("end", end).on("error", fail).on("close", cut);
  if (source.destroyed || source.readableEnded) cut();
  return promise;
}
