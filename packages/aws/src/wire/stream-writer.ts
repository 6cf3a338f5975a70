import type { ServerResponse } from "node:http";
import { drained } from "@galatea/base";

/**
 * An answer that goes out in parts, however long nothing comes between them. While its client does not take what is written, the port's
 * time for connections without progress counts, and its writer waits.
 */
export class StreamWriter {
  readonly #response: ServerResponse;
  readonly #signal: AbortSignal;
  readonly #stallMsMax: number;

  /** The head leaves with the first part. */
  constructor(response: ServerResponse, signal: AbortSignal) {
    this.#response = response;
    this.#signal = signal;
    this.#stallMsMax = response.socket?.timeout ?? 0;
    response.socket?.setTimeout(0);
  }

  /** Resolves when another part may be written. Rejects with the signal's reason when the client is gone. */
  async write(part: Uint8Array | string): Promise<void> {
    const response = this.#response;
    this.#signal.throwIfAborted();
    // Not corked: what a corked response in chunks is told of its socket is lost (Node 24), and then nothing holds its writer up.
    if (response.write(part)) return;
    response.socket?.setTimeout(this.#stallMsMax);
    await drained(response, this.#signal);
    response.socket?.setTimeout(0);
  }

  end(): void {
    this.#response.socket?.setTimeout(this.#stallMsMax);
    this.#response.end();
  }
}
