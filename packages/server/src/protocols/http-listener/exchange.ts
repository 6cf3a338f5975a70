import { ByteLease, type ByteBudget, type Clock } from "@galatea/base";
import type { IncomingMessage, ServerResponse } from "node:http";

/**
 * One request and its response. `signal` aborts when the client is gone before the response was sent, at every stage. Exactly one of the
 * `reply` functions of this module ends it.
 */
export interface Exchange {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  /** The path as received, without decoding or query string. */
  readonly path: string;
  readonly method: string;
  readonly signal: AbortSignal;
  /** The clock for this exchange and the calls made for it. */
  readonly clock: Clock;
  /** Time at which its head was complete; its body may follow. */
  readonly receivedNs: number;
  /** The exchange's lease of the memory for requests in flight; released when the exchange is closed. */
  readonly memory: ByteLease;
  /** See `RequestHead`. */
  executionMsMax: number | null;
  /** Calls `release` once when no bytes of this exchange are in flight any more: the response was written, or the connection is gone. */
  onClosed(release: () => void): void;
}

/**
 * Estimated memory of an exchange besides its body: objects of Node and the server, header lines. Counted, but never a reason to reject
 * it.
 */
export const exchangeBytes = 4 * 1024;

export interface ExchangeOptions {
  readonly budget: ByteBudget;
  readonly clock: Clock;
}

/** The owner of an exchange, notified before all others that it is closed. */
export interface ExchangeOwner {
  exchangeClosed(exchange: LiveExchange): void;
}

/** An exchange as its connection keeps it, so that the end of the connection ends each of them. */
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
    this.memory.growUnchecked(exchangeBytes);
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

  /** Ends the exchange: the response has been passed to the kernel, or never will be. */
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

/** Returns the path of a request line with a whole URL, which clients of a proxy send. */
function originForm(url: string): string {
  if (url.startsWith("/")) return url;
  const authority = /^https?:\/\/[^/?#]*/i.exec(url)?.[0];
  if (authority === undefined) return url;
  const rest = url.slice(authority.length);
  return rest.startsWith("/") ? rest : `/${rest}`;
}
