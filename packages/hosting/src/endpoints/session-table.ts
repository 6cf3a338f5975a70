import { AwsError, type Clock } from "@galatea/base";
import type { InvocationReply, InvocationRequest, OpenedSession } from "../invocations/index.ts";
import { newSession, sessionNotFound } from "../invocations/index.ts";

/** Maximum number of open sessions of one variant. */
export const sessionsMax = 10_000;

/** A response, and the instance that sent it. */
export interface RoutedSession<Holder> {
  readonly reply: InvocationReply;
  readonly holder: Holder;
}

export interface SessionTableOptions<Holder> {
  readonly endpointName: string;
  readonly sessionsMax: number;
  readonly clock: Clock;
  /** Returns whether the instance still gets requests. */
  readonly isServing: (holder: Holder) => boolean;
}

interface OpenSession<Holder> {
  readonly holder: Holder;
  readonly expiresMs: number;
}

/**
 * The instance of each stateful session of a variant. The model chooses a session's id and duration, and keeps its
 * state.
 */
export class SessionTable<Holder> {
  readonly #options: SessionTableOptions<Holder>;
  readonly #open = new Map<string, OpenSession<Holder>>();
  #openingCount = 0;

  constructor(options: SessionTableOptions<Holder>) {
    this.#options = options;
  }

  /** Returns the instance of a session; null for one that is unknown or closed. */
  holderOf(id: string): Holder | null {
    const session = this.#open.get(id);
    if (session === undefined) return null;
    if (session.expiresMs > this.#options.clock.epochMs()) return session.holder;
    this.#open.delete(id);
    return null;
  }

  /** Forgets the sessions of instances that get no more requests. */
  drop(holders: ReadonlySet<Holder>): void {
    for (const [id, { holder }] of this.#open) if (holders.has(holder)) this.#open.delete(id);
  }

  /**
   * Sends a request to the instance of its session, or to any for a new one, and applies the session headers of the
   * response. Throws AwsError for an unknown session, and where no more can be opened.
   */
  async serve(
    request: InvocationRequest,
    ask: (holder: Holder | null) => Promise<RoutedSession<Holder>>,
  ): Promise<InvocationReply> {
    const { session: id = newSession } = request;
    if (id === newSession) return await this.#opened(ask);
    const holder = this.holderOf(id);
    if (holder === null) throw sessionNotFound(id, this.#options.endpointName);
    const { reply } = await ask(holder);
    const isClosed = reply.closedSession === id;
    if (isClosed) this.#open.delete(id);
    return { ...reply, openedSession: null, closedSession: isClosed ? id : null };
  }

  async #opened(ask: (holder: null) => Promise<RoutedSession<Holder>>): Promise<InvocationReply> {
    this.#makeRoom();
    this.#openingCount += 1;
    try {
      const { reply, holder } = await ask(null);
      if (reply.openedSession !== null) this.#add(reply, reply.openedSession, holder);
      return { ...reply, closedSession: null };
    } finally {
      this.#openingCount -= 1;
    }
  }

  #add(reply: InvocationReply, { id, expiresMs }: OpenedSession, holder: Holder): void {
    if (this.holderOf(id) !== null) {
      if (!Buffer.isBuffer(reply.body)) reply.body.destroy();
      reply.done();
      const text = `The model opened a session with the id ${id}, which another session has.`;
      throw new AwsError("ModelError", text, { statusFallback: 424 });
    }
    if (this.#options.isServing(holder)) this.#open.set(id, { holder, expiresMs });
  }

  #makeRoom(): void {
    const { sessionsMax: max, clock } = this.#options;
    if (this.#open.size + this.#openingCount < max) return;
    const nowMs = clock.epochMs();
    for (const [id, { expiresMs }] of this.#open) if (expiresMs <= nowMs) this.#open.delete(id);
    if (this.#open.size + this.#openingCount < max) return;
    const text = `${max} sessions are open on this variant, which is the maximum`;
    throw new AwsError("ServiceUnavailable", text, { statusFallback: 503 });
  }
}
