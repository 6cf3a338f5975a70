import type { Dispatcher } from "undici";

/** A container's complete response. */
export interface BufferedReply {
  readonly status: number;
  readonly body: Buffer;
}

export interface BufferedReplyOptions {
  /** Throws ResponseRejected if the response of `byteLength` bytes is too large; called before the bytes are kept. */
  readonly admit: (byteLength: number) => void;
  readonly signal: AbortSignal;
}

/**
 * Buffers a response while undici receives it. This is faster than undici's `request` with a body stream: 10,000
 * instead of 6,000 small requests per second (bench row `transform`).
 */
export class BufferedReplyHandler implements Dispatcher.DispatchHandler {
  readonly reply: Promise<BufferedReply>;
  readonly #options: BufferedReplyOptions;
  readonly #resolve: (reply: BufferedReply) => void;
  readonly #reject: (error: unknown) => void;
  #controller: Dispatcher.DispatchController | null = null;
  #chunks: Buffer[] = [];
  #byteLength = 0;
  #status = 0;

  constructor(options: BufferedReplyOptions) {
    this.#options = options;
    const { promise, resolve, reject } = Promise.withResolvers<BufferedReply>();
    this.reply = promise;
    this.#resolve = resolve;
    this.#reject = reject;
    options.signal.addEventListener("abort", this.#giveUp, { once: true });
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller;
    if (this.#options.signal.aborted) this.#giveUp();
  }

  onResponseStart(_controller: Dispatcher.DispatchController, status: number): void {
    this.#status = status;
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    this.#byteLength += chunk.length;
    try {
      this.#options.admit(this.#byteLength);
    } catch (error) {
      controller.abort(error as Error);
      return;
    }
    this.#chunks.push(chunk);
  }

  onResponseEnd(): void {
    this.#leave();
    const [only] = this.#chunks;
    const body = this.#chunks.length === 1 && only !== undefined ? only : Buffer.concat(this.#chunks, this.#byteLength);
    this.#resolve({ status: this.#status, body });
  }

  onResponseError(_controller: Dispatcher.DispatchController, error: Error): void {
    this.#leave();
    this.#reject(error);
  }

  #leave(): void {
    this.#chunks = this.#status === 0 ? [] : this.#chunks;
    this.#options.signal.removeEventListener("abort", this.#giveUp);
  }

  readonly #giveUp = (): void => {
    this.#controller?.abort(this.#options.signal.reason as Error);
  };
}
