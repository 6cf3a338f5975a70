/** A reference to a loaded model. When the last reference is disposed, the model is freed. */
export interface SessionLease<Session> extends AsyncDisposable {
  readonly session: Session;
  /** Returns whether the session's memory is charged to this lease. It is charged to the oldest lease. */
  isCharged(): boolean;
  /** Returns the bytes of the session if it is charged to this lease, otherwise 0. The sum over all leases counts each session once. */
  chargedBytes(): number;
}

interface Shared<Session> {
  readonly opened: Promise<Session>;
  readonly bytes: () => number;
  /** Leases, the oldest first, each with the callback for a change of its charge. */
  readonly leases: Map<SessionLease<Session>, () => void>;
  /** Number of open leases and of pending calls for a lease. */
  useCount: number;
}

/** Sessions by content: models with equal content share one session. */
export class SharedSessions<Session extends AsyncDisposable> {
  readonly #byKey = new Map<string, Shared<Session>>();
  /** Sessions that are being freed. A new lease of the same content waits until its session is freed. */
  readonly #closing = new Map<string, Promise<void>>();

  get count(): number {
    return this.#byKey.size;
  }

  /** Returns whether a model uses this session now. */
  isOpen(key: string): boolean {
    return this.#byKey.has(key);
  }

  /** Notifies the charged lease that the session's size has changed. */
  changed(key: string): void {
    this.#byKey.get(key)?.leases.values().next().value?.();
  }

  /** Returns a lease. Calls `open` first if no lease of `key` exists. A lease without `onCharged` is never charged. */
  async lease(
    key: string,
    options: { bytes: () => number; onCharged: (() => void) | null; open: () => Promise<Session> },
  ): Promise<SessionLease<Session>> {
    const shared = this.#byKey.get(key) ?? this.#add(key, options.bytes, options.open);
    shared.useCount += 1;
    let session: Session;
    try {
      session = await shared.opened;
    } catch (error) {
      this.#leave(key, shared);
      throw error;
    }
    let held = true;
    const lease: SessionLease<Session> = {
      session,
      isCharged: () => shared.leases.keys().next().value === lease,
      chargedBytes: () => (lease.isCharged() ? shared.bytes() : 0),
      [Symbol.asyncDispose]: async () => {
        if (!held) return;
        held = false;
        shared.leases.delete(lease);
        if (this.#leave(key, shared)) await this.#close(key, session);
      },
    };
    if (options.onCharged !== null) shared.leases.set(lease, options.onCharged);
    return lease;
  }

  #add(key: string, bytes: () => number, open: () => Promise<Session>): Shared<Session> {
    const opened = (this.#closing.get(key) ?? Promise.resolve()).then(open);
    const shared: Shared<Session> = { opened, bytes, leases: new Map(), useCount: 0 };
    this.#byKey.set(key, shared);
    return shared;
  }

  async #close(key: string, session: Session): Promise<void> {
    const closing = Promise.resolve(session[Symbol.asyncDispose]());
    const closed = closing.then(
      () => {},
      () => {},
    );
    this.#closing.set(key, closed);
    try {
      await closing;
    } finally {
      if (this.#closing.get(key) === closed) this.#closing.delete(key);
    }
  }

  /** Removes a lease. Returns true for the last one; the next lease opens the session again. */
  #leave(key: string, shared: Shared<Session>): boolean {
    shared.useCount -= 1;
    if (shared.useCount > 0) return false;
    if (this.#byKey.get(key) === shared) this.#byKey.delete(key);
    return true;
  }
}
