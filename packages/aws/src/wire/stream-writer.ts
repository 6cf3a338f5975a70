import type { ServerResponse } from "node:http";
import { waitForDrain } from "@galatea/base";

/**
 * A response in chunks, with pauses of any length. While its client does not read, the port's limit for connections
 * without progress applies, and the writer waits.
 */
export class StreamWriter {
  readonly #response: ServerResponse;
  readonly #signal: AbortSignal;
  readonly #stallMsMax: number;

  /** The head is sent with the first chunk. */
  constructor(response: ServerResponse, signal: AbortSignal) {
    this.#response = response;
    this.#signal = signal;
    this.#stallMsMax = response.socket?.timeout ?? 0;
    response.socket?.setTimeout(0);
  }

  /** Resolves when another chunk can be written. Rejects with the signal's reason when the client has disconnected. */
  async write(part: Uint8Array | string): Promise<void> {
    const response = this.#response;
    this.#signal.throwIfAborted();
    // Without cork: a corked chunked response loses the socket's backpressure (Node 24), and then the writer never
    // waits.
    if (response.write(part)) return;
    response.socket?.setTimeout(this.#stallMsMax);
    await waitForDrain(response, this.#signal);
    response.socket?.setTimeout(0);
  }

  end(): void {
    this.#response.socket?.setTimeout(this.#stallMsMax);
    this.#response.end();
  }
}
