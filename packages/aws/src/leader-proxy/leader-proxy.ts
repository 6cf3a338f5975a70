import type { IncomingMessage, ServerResponse } from "node:http";
import { delay, openDeadline, type Clock, type Logger } from "@galatea/base";
import { sendUnavailable } from "../wire/index.ts";
import { LeaderConnections, type UnsentRequest } from "./leader-connections.ts";
import { exchange, LeaderLost } from "./exchange.ts";
import { hasPassedGateway } from "./passed-headers.ts";

export interface LeaderLocation {
  /** URL of the leader; null if none is known. */
  readonly url: string | null;
  /** Resolves when the URL may have changed. */
  changed(): Promise<void>;
}

export interface LeaderProxyOptions {
  readonly leader: LeaderLocation;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** Maximum time that a request waits for a leader that accepts connections, in milliseconds. */
const leaderMsMax = 10_000;
const retryEveryMs = 200;

/**
 * Passes requests unchanged to the leader, so that their signatures stay valid, and streams both bodies. A request that
 * could not be sent waits for a leader, ten seconds at most. A request of which the leader may have received a byte is
 * never sent again, because the leader may have performed it.
 */
export class LeaderProxy implements Disposable {
  readonly #options: LeaderProxyOptions;
  readonly #connections: LeaderConnections;

  constructor(options: LeaderProxyOptions) {
    this.#options = options;
    this.#connections = new LeaderConnections(options.clock);
  }

  /** Serves one request and never rejects. */
  handle(request: IncomingMessage, response: ServerResponse): void {
    const refuse = (text: string) => sendUnavailable(request, response, text, this.#options);
    if (hasPassedGateway(request.headers.via))
      return refuse("The URL of the leader is that of a gateway. Set `galatea up --advertise-url` to its own.");
    const disconnected = new AbortController();
    response.once("close", () => disconnected.abort(new Error("the client closed the connection")));
    this.#pass(request, response, disconnected.signal).catch((error: unknown) => {
      if (response.headersSent || disconnected.signal.aborted) response.destroy();
      else refuse(error instanceof LeaderLost ? error.message : "No platform has the records now. Retry later.");
    });
  }

  [Symbol.dispose](): void {
    this.#connections[Symbol.dispose]();
  }

  async #pass(request: IncomingMessage, response: ServerResponse, disconnected: AbortSignal): Promise<void> {
    const unsent = await this.#connected(request, disconnected);
    await exchange(unsent, { request, response, disconnected, clock: this.#options.clock });
  }

  /** Resolves with a request over a connection to the leader, of which nothing is sent yet. */
  async #connected(request: IncomingMessage, disconnected: AbortSignal): Promise<UnsentRequest> {
    const { leader, clock } = this.#options;
    using deadline = openDeadline({ clock, afterMs: leaderMsMax, signal: disconnected });
    const { signal } = deadline;
    for (;;) {
      const changed = leader.changed();
      const { url } = leader;
      const unsent = url === null ? null : await this.#connections.open(url, request, signal);
      if (unsent !== null) return unsent;
      await Promise.race([changed, delay(clock, retryEveryMs, signal)]);
      signal.throwIfAborted();
    }
  }
}
