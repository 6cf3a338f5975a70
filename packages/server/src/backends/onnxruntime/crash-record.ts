export interface CrashLimits {
  /** Number of crashes after which content runs in a separate process. */
  readonly isolateAfter: number;
  /** Number of crashes after which content is not run any more. */
  readonly refusedAfter: number;
  /** Time in milliseconds without a crash after which the count of crashes decreases by one. */
  readonly forgetMs: number;
  /** Maximum number of crashed contents that are recorded. When it is exceeded, the content whose last crash is oldest is removed. */
  readonly contentsMax: number;
}

/** The process in which content may run, as its crashes determine: the shared process, a separate one, or none. */
export type Verdict = "shared" | "apart" | "refused";

interface Crashes {
  readonly count: number;
  readonly lastMs: number;
}

/**
 * Counts the crashes of each content. A key identifies files and settings. When a file changes, the key changes too, and the count starts
 * at 0.
 */
export class CrashRecord {
  readonly #limits: CrashLimits;
  /** Crashes by content, ordered by the last crash. */
  readonly #byKey = new Map<string, Crashes>();

  constructor(limits: CrashLimits) {
    this.#limits = limits;
  }

  get size(): number {
    return this.#byKey.size;
  }

  crashed(key: string, nowMs: number): void {
    const count = Math.min(this.countOf(key, nowMs) + 1, this.#limits.refusedAfter);
    this.#byKey.delete(key);
    this.#byKey.set(key, { count, lastMs: nowMs });
    if (this.#byKey.size > this.#limits.contentsMax) this.#byKey.delete(this.#byKey.keys().next().value as string);
  }

  /** Returns the number of crashes that have not expired. */
  countOf(key: string, nowMs: number): number {
    const crashes = this.#byKey.get(key);
    if (crashes === undefined) return 0;
    const forgotten = Math.floor(Math.max(0, nowMs - crashes.lastMs) / this.#limits.forgetMs);
    const count = Math.max(0, crashes.count - forgotten);
    if (count === 0) this.#byKey.delete(key);
    return count;
  }

  verdict(key: string, nowMs: number): Verdict {
    const count = this.countOf(key, nowMs);
    if (count >= this.#limits.refusedAfter) return "refused";
    return count >= this.#limits.isolateAfter ? "apart" : "shared";
  }
}
