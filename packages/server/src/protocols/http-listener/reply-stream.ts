import { waitForDrain } from "@galatea/base";
import type { Exchange } from "./exchange.ts";
import { writeHead } from "./reply.ts";

/**
 * A response of unknown length, sent in chunks. A writer waits until the client has read the previous chunk, whose memory stays charged
 * until then. A client that stops reading blocks only its own response.
 */
export class ReplyStream {
  readonly #exchange: Exchange;

  /** Sends the head. An empty content type is omitted; `extra` are other headers as name, value, name, value. */
  constructor(exchange: Exchange, status: number, contentType: string, extra: readonly string[] = []) {
    this.#exchange = exchange;
    writeHead(exchange, status, contentType === "" ? [...extra] : ["Content-Type", contentType, ...extra]);
    exchange.response.flushHeaders();
  }

  /**
   * Sends a chunk and resolves when the next one may be written. A string is latin1. Rejects with the signal's reason when the client has
   * disconnected.
   */
  async write(segment: string | readonly Uint8Array[]): Promise<void> {
    const { response, signal, memory } = this.#exchange;
    signal.throwIfAborted();
    if (typeof segment === "string") response.write(segment, "latin1");
    else for (const chunk of segment) response.write(chunk);
    if (!response.writableNeedDrain) return;
    const waitingBytes = response.writableLength;
    memory.growUnchecked(waitingBytes);
    try {
      await waitForDrain(response, signal);
    } finally {
      memory.shrinkBy(waitingBytes);
    }
  }

  end(): void {
    this.#exchange.response.end();
  }
}
