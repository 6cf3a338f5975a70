import { AwsError, type Clock } from "@galatea/base";
import type { InvocationReply, InvocationRequest, OpenedSession } from "../invocations/index.ts";
import { newSessionId, sessionNotFound } from "../invocations/index.ts";

/** Maximum number of open sessions of one variant. */
export const sessionsMax = 10_000;

/** A response and the instance that has sent it. */
export interface SessionReply<Holder> {
  readonly reply: InvocationReply;
  readonly holder: Holder;
}

export interface SessionTableOptions<Holder> {
  readonly endpointName: string;
  readonly sessionsMax: number;
  readonly clock: Clock;
  /** Returns whether requests are still routed to the instance. */
  readonly isServing: (holder: Holder) => boolean;
}

interface OpenSession<Holder> {
  readonly holder: Holder;
  readonly expiresMs: number;
}

/**
 * Maps the stateful sessions of a variant to the instances that hold their state. The model chooses the id and the
 * duration of a session.
 */
export class SessionTable<Holder> {
  readonly #options: SessionTableOptions<Holder>;
  readonly #open = new Map<string, OpenSession<Holder>>();
  #openingCount = 0;

  constructor(options: SessionTableOptions<Holder>) {
    this.#options = options;
  }

  /** Returns the instance of a session; null if the session is unknown, expired or closed. */
  holderOf(id: string): Holder | null {
    const session = this.#open.get(id);
    if (session === undefined) return null;
    if (session.expiresMs > this.#options.clock.epochMs()) return session.holder;
    this.#open.delete(id);
    return null;
  }

  /** Removes the sessions of instances to which requests are no longer routed. */
  drop(holders: ReadonlySet<Holder>): void {
    for (const [id, { holder }] of this.#open) if (holders.has(holder)) this.#open.delete(id);
  }

  /**
   * Sends a request to the instance of its session, or to any instance for a new session. Opens or closes the session as
   * the response's headers say. Throws AwsError for an unknown session, and if the maximum number of sessions is open.
   */
  async serve(
    request: InvocationRequest,
    call: (holder: Holder | null) => Promise<SessionReply<Holder>>,
  ): Promise<InvocationReply> {
    const { session: id = newSessionId } = request;
    if (id === newSessionId) return await this.#opened(call);
    const holder = this.holderOf(id);
    if (holder === null) throw sessionNotFound(id, this.#options.endpointName);
    const { reply } = await call(holder);
    const isClosed = reply.closedSession === id;
    if (isClosed) this.#open.delete(id);
    return { ...reply, openedSession: null, closedSession: isClosed ? id : null };
  }

  async #opened(call: (holder: null) => Promise<SessionReply<Holder>>): Promise<InvocationReply> {
    this.#evictSessions();
    this.#openingCount += 1;
    try {
      const { reply, holder } = await call(null);
      if (reply.openedSession !== null) this.#add(reply, reply.openedSession, holder);
      if (Buffer.isBuffer(reply.body)) reply.done();
      return { ...reply, closedSession: null };
    } finally {
      this.#openingCount -= 1;
    }
  }

  #add(reply: InvocationReply, { id, expiresMs }: OpenedSession, holder: Holder): void {
    if (this.holderOf(id) !== null) {
      if (!Buffer.isBuffer(reply.body)) reply.body.destroy();
      const text = `The model opened a session with id ${id}, but another open session has the same id.`;
      const members = { OriginalStatusCode: 502, OriginalMessage: text };
      const error = new AwsError("ModelError", text, { statusFallback: 424, members });
      reply.failed(error);
      reply.done();
      throw error;
    }
    if (this.#options.isServing(holder)) this.#open.set(id, { holder, expiresMs });
  }

  #evictSessions(): void {
    const { sessionsMax: max, clock } = this.#options;
    if (this.#open.size + this.#openingCount < max) return;
    const nowMs = clock.epochMs();
    for (const [id, { expiresMs }] of this.#open) if (expiresMs <= nowMs) this.#open.delete(id);
    if (this.#open.size + this.#openingCount < max) return;
    const text = `Cannot open a session: the variant has ${max} open sessions, which is the maximum. Close a session or retry later.`;
    throw new AwsError("ServiceUnavailable", text, { statusFallback: 503 });
  }
}
