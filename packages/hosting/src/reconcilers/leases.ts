type Work = (superseded: AbortSignal) => Promise<void>;

interface Holder {
  readonly aborter: AbortController;
  /** The work that starts when the current work has ended; null if none waits. */
  next: Work | null;
}

/**
 * Runs at most one work at a time for each record. `hold` is asynchronous and the only method, so that a later version can compete for leases
 * with other processes.
 */
export class Leases {
  readonly #holders = new Map<string, Holder>();

  /**
   * Runs work for a key; the work must not reject. If other work for the key is running, aborts the signal of that work and returns; the new
   * work starts when that work has ended. If several works wait, only the last one runs.
   */
  async hold(key: string, work: Work): Promise<void> {
    const current = this.#holders.get(key);
    if (current !== undefined) {
      current.next = work;
      current.aborter.abort(new Error("superseded by a newer change of the record"));
      return;
    }
    try {
      for (let now: Work | null = work; now !== null;) {
        const holder: Holder = { aborter: new AbortController(), next: null };
        this.#holders.set(key, holder);
        await now(holder.aborter.signal);
        now = holder.next;
      }
    } finally {
      this.#holders.delete(key);
    }
  }
}
