import { pipeline, Transform, type Readable } from "node:stream";

/**
 * A response that is streamed from one container to the next. Its bytes are counted but not buffered, and back pressure
 * slows the sending container. The caller disposes the stream when the body is no longer read.
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
      transform: (chunk: Buffer, _encoding, done) => {
        byteLength += chunk.length;
        if (byteLength <= limit.bytesMax) return done(null, chunk);
        const error = limit.tooLong();
        this.#failed.abort(error);
        return done(error);
      },
    });
    this.body = counted;
    // If the receiving side ends first, `pipeline` destroys the source. Only an error before that is a failure of the
    // source.
    source.once("error", (error) => {
      if (!counted.destroyed) this.#failed.abort(error);
    });
    // The reader may have destroyed the body already. An error without a listener would terminate the process.
    for (const stream of [source, counted]) stream.on("error", () => {});
    pipeline(source, counted, () => {});
  }

  /** Aborts when the sending container's response ends early or is longer than the limit. */
  get failed(): AbortSignal {
    return this.#failed.signal;
  }

  /** True while the receiving container waits for data of the sending one, or after the sending one has failed. */
  get isAwaited(): boolean {
    return this.failed.aborted || (!this.#source.readableEnded && this.body.readableLength === 0);
  }

  /** Calls a function once, when the sending container's response has ended. */
  ended(then: () => void): void {
    this.#source.once("close", then);
  }

  [Symbol.dispose](): void {
    this.#source.destroy();
    this.body.destroy();
  }
}
