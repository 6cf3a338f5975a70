import { waitForDrain } from "@galatea/base";
import type { Exchange } from "./exchange.ts";
import { writeHead } from "./reply.ts";

/**
 * A response of unknown length, sent in chunks. A chunk that the client has not read keeps its writer waiting, and its memory is counted
 * meanwhile: a client that stops reading blocks only its own response.
 */
export class ReplyStream {
  readonly #exchange: Exchange;

  /** Omits the content type when it is "". `extra`: other headers, name, value, name, value. */
  constructor(exchange: Exchange, status: number, contentType: string, extra: readonly string[] = []) {
    this.#exchange = exchange;
    writeHead(exchange, status, contentType === "" ? [...extra] : ["Content-Type", contentType, ...extra]);
    exchange.response.flushHeaders();
  }

  /** Resolves when another chunk may be written; a string is latin1. Rejects with the signal's reason when the client is gone. */
  async write(part: string | readonly Uint8Array[]): Promise<void> {
    const { response, signal, memory } = this.#exchange;
    signal.throwIfAborted();
    if (typeof part === "string") response.write(part, "latin1");
    else for (const piece of part) response.write(piece);
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
