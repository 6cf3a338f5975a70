import { pipeline, Transform, type Readable } from "node:stream";

/**
 * The response of one container as it streams to the next: counted, not buffered, and read no faster than it is taken.
 * The caller disposes it when the body is no longer read.
 */
export class HopStream implements Disposable {
  /** Body for the next container. */
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
    // A body that ends from the other side destroys its source: only an error that the source raises first is the
    // source's failure.
    source.once("error", (error) => {
      if (!counted.destroyed) this.#failed.abort(error);
    });
    // A reader of the body may have left, and an error without a listener would end the process.
    for (const stream of [source, counted]) stream.on("error", () => {});
    pipeline(source, counted, () => {});
  }

  /** Aborts when the response of the container ends early or is too long. */
  get failed(): AbortSignal {
    return this.#failed.signal;
  }

  /** True while the next container waits for the responding one. */
  get isAwaited(): boolean {
    return this.failed.aborted || (!this.#source.readableEnded && this.body.readableLength === 0);
  }

  /** Calls back once when the responding container sends no more. */
  ended(then: () => void): void {
    this.#source.once("close", then);
  }

  [Symbol.dispose](): void {
    this.#source.destroy();
    this.body.destroy();
  }
}
