import type { ServerResponse } from "node:http";
import { waitForDrain } from "@galatea/base";

/**
 * A response in chunks, with pauses of any length between them. While the client does not read, `write` waits, and the
 * server's limit for connections without progress applies.
 */
export class StreamWriter {
  readonly #response: ServerResponse;
  readonly #signal: AbortSignal;
  readonly #stallMsMax: number;

  /** Prepares the response. The first chunk sends the head. */
  constructor(response: ServerResponse, signal: AbortSignal) {
    this.#response = response;
    this.#signal = signal;
    this.#stallMsMax = response.socket?.timeout ?? 0;
    response.socket?.setTimeout(0);
  }

  /**
   * Writes a chunk. Resolves when another chunk can be written. Rejects with the signal's reason when the client has
   * disconnected.
   */
  async write(segment: Uint8Array | string): Promise<void> {
    const response = this.#response;
    this.#signal.throwIfAborted();
    // `cork` is not used. A corked chunked response loses the socket's backpressure (Node 24), and the writer would
    // never wait.
    if (response.write(segment)) return;
    response.socket?.setTimeout(this.#stallMsMax);
    await waitForDrain(response, this.#signal);
    response.socket?.setTimeout(0);
  }

  end(): void {
    this.#response.socket?.setTimeout(this.#stallMsMax);
    this.#response.end();
  }
}
