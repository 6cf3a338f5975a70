/** A use of a loaded model. Disposing the last one frees it. */
export interface SessionLease<Session> extends AsyncDisposable {
  readonly session: Session;
  /** Whether it is this lease that the session is charged to: the oldest. */
  isCharged(): boolean;
  /** What the session holds if this lease is the one it is charged to (the oldest), else 0: the sum over all leases is right. */
  chargedBytes(): number;
}

interface Shared<Session> {
  readonly opened: Promise<Session>;
  readonly bytes: () => number;
  /** Those that are charged, in order of arrival, and who hears that the charge has changed. */
  readonly leases: Map<SessionLease<Session>, () => void>;
  /** Leases given and requested. */
  useCount: number;
}

/** Sessions by what they are made of: however many models carry the same content, it is loaded once. */
export class SharedSessions<Session extends AsyncDisposable> {
  readonly #byKey = new Map<string, Shared<Session>>();
  /** Sessions that are being freed: whoever wants the same content again waits for that. */
  readonly #closing = new Map<string, Promise<void>>();

  get count(): number {
    return this.#byKey.size;
  }

  /** Whether some model holds this session now. */
  isOpen(key: string): boolean {
    return this.#byKey.has(key);
  }

  /** What this session holds is another number now. */
  changed(key: string): void {
    this.#byKey.get(key)?.leases.values().next().value?.();
  }

  /** `open` is called when no other lease of `key` is held. A lease without `onCharged` leaves the bytes to the next. */
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

  /** Whether that was the last use; from then on the next lease opens anew. */
  #leave(key: string, shared: Shared<Session>): boolean {
    shared.useCount -= 1;
    if (shared.useCount > 0) return false;
    if (this.#byKey.get(key) === shared) this.#byKey.delete(key);
    return true;
  }
}
