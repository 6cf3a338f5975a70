import { ByteLease, type ByteBudget, type Clock } from "@galatea/base";
import type { IncomingMessage, ServerResponse } from "node:http";

/**
 * One request and its response. `signal` aborts when the client disconnects before the response was sent. Exactly one call of a `reply`
 * function of this module ends the exchange.
 */
export interface Exchange {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  /** The path as received, without decoding or query string. */
  readonly path: string;
  readonly method: string;
  readonly signal: AbortSignal;
  /** The clock for this exchange and the model calls made for it. */
  readonly clock: Clock;
  /** Time, on the engine's monotonic clock, at which the request's head was complete. The body may arrive later. */
  readonly receivedNs: number;
  /** The exchange's lease of the memory budget; released when the exchange is closed. */
  readonly memory: ByteLease;
  /** Time limit of executions for this request, in milliseconds; null for none. */
  executionMsMax: number | null;
  /** Calls `release` once when no bytes of this exchange are in flight any more: the response was written, or the connection has ended. */
  onClosed(release: () => void): void;
}

/**
 * Estimated memory of an exchange without its body: objects of Node and the server, header lines. A request is never rejected for this
 * memory, so it is charged even over the budget.
 */
export const exchangeMemoryBytes = 4 * 1024;

export interface ExchangeOptions {
  readonly budget: ByteBudget;
  readonly clock: Clock;
}

/** The owner of exchanges. It is notified of a closed exchange before all other callbacks. */
export interface ExchangeOwner {
  exchangeClosed(exchange: LiveExchange): void;
}

/** An open exchange. It is in the list of its connection, whose end closes it. */
export class LiveExchange implements Exchange {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly path: string;
  readonly method: string;
  readonly clock: Clock;
  readonly receivedNs: number;
  readonly memory: ByteLease;
  executionMsMax: number | null = null;
  readonly #controller = new AbortController();
  readonly #owner: ExchangeOwner;
  #releases: (() => void)[] | null = null;
  #closed = false;

  constructor(
    { request, response }: Pick<Exchange, "request" | "response">,
    { budget, clock }: ExchangeOptions,
    owner: ExchangeOwner,
  ) {
    this.#owner = owner;
    this.request = request;
    this.response = response;
    this.clock = clock;
    this.receivedNs = clock.monotonicNs();
    this.memory = new ByteLease(budget);
    this.memory.growUnchecked(exchangeMemoryBytes);
    const url = originForm(request.url ?? "");
    const query = url.indexOf("?");
    this.path = query === -1 ? url : url.slice(0, query);
    this.method = request.method ?? "";
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  get closed(): boolean {
    return this.#closed;
  }

  onClosed(release: () => void): void {
    if (this.#closed) release();
    else if (this.#releases === null) this.#releases = [release];
    else this.#releases.push(release);
  }

  /** Closes the exchange, because the response was passed to the kernel or never will be. */
  close(clientGone: boolean): void {
    if (this.#closed) return;
    this.#closed = true;
    if (clientGone) this.#controller.abort(new Error("the client has closed the connection"));
    this.#owner.exchangeClosed(this);
    if (this.#releases !== null) for (const release of this.#releases) release();
    this.#releases = null;
    this.memory[Symbol.dispose]();
  }
}

/** Returns the path of a request. Clients of a proxy send a whole URL in the request line; its path is returned. */
function originForm(url: string): string {
  if (url.startsWith("/")) return url;
  const authority = /^https?:\/\/[^/?#]*/i.exec(url)?.[0];
  if (authority === undefined) return url;
  const rest = url.slice(authority.length);
  return rest.startsWith("/") ? rest : `/${rest}`;
}
