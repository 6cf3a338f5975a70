import type { Readable } from "node:stream";

/**
 * All of a body of at most `bytesMax`, uncopied where it came in one piece. A longer one rejects with `tooLong()` as soon as it is
 * known to be; what has not been read is left to the caller. For what is called per request: iterating over a stream costs several
 * times as much.
 */
export function readWhole(source: Readable, bytesMax: number, tooLong: () => Error): Promise<Buffer> {
  const { promise, resolve, reject } = Promise.withResolvers<Buffer>();
  const pieces: Buffer[] = [];
  let byteLength = 0;
  const leave = () => source.off("data", take).off("end", end).off("error", fail).off("close", cut);
  const take = (piece: Buffer) => {
    pieces.push(piece);
    byteLength += piece.byteLength;
    if (byteLength > bytesMax) fail(tooLong());
  };
  const end = () => {
    leave();
    const [only] = pieces;
    resolve(pieces.length === 1 && only !== undefined ? only : Buffer.concat(pieces, byteLength));
  };
  const fail = (error: Error) => {
    leave().pause();
    reject(error);
  };
  const cut = () => fail(new Error("the body ended before its end"));
  source.on("data", take).on("end", end).on("error", fail).on("close", cut);
  if (source.destroyed || source.readableEnded) cut();
  return promise;
}
