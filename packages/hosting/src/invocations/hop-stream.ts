import { pipeline, Transform, type Readable } from "node:stream";

/**
 * The answer of one container on its way to the next, as it comes: counted, never gathered, and read no faster than it is taken. To be
 * disposed when nobody takes it any more.
 */
export class HopStream implements Disposable {
  /** For the next container. */
  readonly body: Readable;
  readonly #source: Readable;
  readonly #failed = new AbortController();

  constructor(source: Readable, limit: { readonly bytesMax: number; readonly tooLong: () => Error }) {
    this.#source = source;
    let byteLength = 0;
    const counted = new Transform({
      transform: (piece: Buffer, _encoding, done) => {
        byteLength += piece.length;
        if (byteLength <= limit.bytesMax) return done(null, piece);
        const error = limit.tooLong();
        this.#failed.abort(error);
        return done(error);
      },
    });
    this.body = counted;
    // What ends a body from the other side ends its source with it: only what comes first from the source is the source's failure.
    source.once("error", (error) => {
      if (!counted.destroyed) this.#failed.abort(error);
    });
    // Whoever takes the body hears of its errors, and may have left.
    for (const stream of [source, counted]) stream.on("error", () => {});
    pipeline(source, counted, () => {});
  }

  /** Aborts when the container that answers breaks off, or answers too much. */
  get failed(): AbortSignal {
    return this.#failed.signal;
  }

  /** Whether the container that answers is what the next one waits for. */
  get isAwaited(): boolean {
    return this.failed.aborted || (!this.#source.readableEnded && this.body.readableLength === 0);
  }

  /** Calls back once when no more comes from the container that answers. */
  ended(then: () => void): void {
    this.#source.once("close", then);
  }

  [Symbol.dispose](): void {
    this.#source.destroy();
    this.body.destroy();
  }
}
