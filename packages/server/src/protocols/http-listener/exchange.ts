import { ByteLease, type ByteBudget, type Clock } from "@galatea/base";
import type { IncomingMessage, ServerResponse } from "node:http";

/**
 * One request and its reply. `signal` aborts when the client is gone before the reply has left, at every stage.
 * Exactly one of the `reply` functions of this folder ends it.
 */
export interface Exchange {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  /** The path as it came: no decoding, no query string. */
  readonly path: string;
  readonly method: string;
  readonly signal: AbortSignal;
  /** Of whoever is asked on behalf of this exchange, too. */
  readonly clock: Clock;
  /** When its head had come; its body may follow. */
  readonly receivedNs: number;
  /** What this exchange holds of the memory for requests in flight; all of it goes back when the exchange is closed. */
  readonly memory: ByteLease;
  /** See `RequestHead`. */
  executionMsMax: number | null;
  /** Called once when nothing of this exchange is on its way any more: the reply was written, or the connection is gone. */
  onClosed(release: () => void): void;
}

/** About what an exchange takes beside its body: Node's objects, header lines, ours. Never a reason to refuse it, but counted. */
export const exchangeBytes = 4 * 1024;

export interface ExchangeParts {
  readonly budget: ByteBudget;
  readonly clock: Clock;
}

/** Who made it, told before all others that it is closed. */
export interface ExchangeOwner {
  exchangeClosed(exchange: LiveExchange): void;
}

/** What a connection keeps of its exchanges, so that the end of the connection reaches each of them. */
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
    { budget, clock }: ExchangeParts,
    owner: ExchangeOwner,
  ) {
    this.#owner = owner;
    this.request = request;
    this.response = response;
    this.clock = clock;
    this.receivedNs = clock.monotonicNs();
    this.memory = new ByteLease(budget);
    this.memory.growAnyway(exchangeBytes);
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

  /** The reply has been handed to the kernel, or never will be. */
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

/** A request line may name the whole URL, as clients do that take this server for a proxy: its path is what counts. */
function originForm(url: string): string {
  if (url.startsWith("/")) return url;
  const authority = /^https?:\/\/[^/?#]*/i.exec(url)?.[0];
  if (authority === undefined) return url;
  const rest = url.slice(authority.length);
  return rest.startsWith("/") ? rest : `/${rest}`;
}
