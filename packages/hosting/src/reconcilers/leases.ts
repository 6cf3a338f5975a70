type Work = (superseded: AbortSignal) => Promise<void>;

interface Held {
  readonly aborter: AbortController;
  /** The work that begins when the holder's has ended; null where the lease ends with it. */
  next: Work | null;
}

/**
 * Who works on which record: one holder at a time for each key. `hold` is asynchronous, and the only way to a lease, so that processes may come
 * to compete for one.
 */
export class Leases {
  readonly #held = new Map<string, Held>();

  /**
   * Runs the work, which must not reject. Where the key is worked on already, the holder's signal aborts, and the work begins when the holder's
   * has ended; of several works that wait so only the last runs.
   */
  async hold(key: string, work: Work): Promise<void> {
    const holder = this.#held.get(key);
    if (holder !== undefined) {
      holder.next = work;
      holder.aborter.abort(new Error("superseded by a newer change of the record"));
      return;
    }
    try {
      for (let now: Work | null = work; now !== null;) {
        const held: Held = { aborter: new AbortController(), next: null };
        this.#held.set(key, held);
        await now(held.aborter.signal);
        now = held.next;
      }
    } finally {
      this.#held.delete(key);
    }
  }
}
