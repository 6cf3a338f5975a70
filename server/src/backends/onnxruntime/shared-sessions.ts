import type { OnnxSession } from "../../native/index.ts";

/** A use of a loaded model. Disposing the last one frees it. */
export interface SessionLease extends AsyncDisposable {
  readonly session: OnnxSession;
  /** What the session holds if this lease is the one it is charged to (the oldest), else 0: the sum over all leases is right. */
  chargedBytes(): number;
}

interface Shared {
  readonly opened: Promise<OnnxSession>;
  readonly byteLength: number;
  /** Those that are charged, in order of arrival. */
  readonly leases: Set<SessionLease>;
  /** Leases given and requested. */
  useCount: number;
}

/** Sessions by what they are made of: however many models carry the same content, it is loaded once. */
export class SharedSessions {
  readonly #byKey = new Map<string, Shared>();

  get count(): number {
    return this.#byKey.size;
  }

  /** Whether some model holds this session now. */
  isOpen(key: string): boolean {
    return this.#byKey.has(key);
  }

  /** `open` is called when no other lease of `key` is held. A lease that is not `charged` leaves the bytes to the next. */
  async lease(
    key: string,
    options: { byteLength: number; charged: boolean; open: () => Promise<OnnxSession> },
  ): Promise<SessionLease> {
    const shared = this.#byKey.get(key) ?? this.#add(key, options.byteLength, options.open);
    shared.useCount += 1;
    let session: OnnxSession;
    try {
      session = await shared.opened;
    } catch (error) {
      this.#leave(key, shared);
      throw error;
    }
    let held = true;
    const lease: SessionLease = {
      session,
      chargedBytes: () => (shared.leases.values().next().value === lease ? shared.byteLength : 0),
      [Symbol.asyncDispose]: async () => {
        if (!held) return;
        held = false;
        shared.leases.delete(lease);
        if (this.#leave(key, shared)) await session[Symbol.asyncDispose]();
      },
    };
    if (options.charged) shared.leases.add(lease);
    return lease;
  }

  #add(key: string, byteLength: number, open: () => Promise<OnnxSession>): Shared {
    const shared: Shared = { opened: open(), byteLength, leases: new Set(), useCount: 0 };
    this.#byKey.set(key, shared);
    return shared;
  }

  /** Whether that was the last use; from then on the next lease opens anew. */
  #leave(key: string, shared: Shared): boolean {
    shared.useCount -= 1;
    if (shared.useCount > 0) return false;
    if (this.#byKey.get(key) === shared) this.#byKey.delete(key);
    return true;
  }
}
