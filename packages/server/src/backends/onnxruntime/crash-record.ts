export interface CrashLimits {
  /** Number of crashes after which content runs in its own process. */
  readonly apartAfter: number;
  /** Number of crashes after which content does not run. */
  readonly refusedAfter: number;
  /** One crash is forgotten after each such time without another. */
  readonly forgetMs: number;
  /** Maximum number of contents; the one whose last crash is oldest is dropped. */
  readonly contentsMax: number;
}

/** The process in which content may run, given its crashes. */
export type Verdict = "shared" | "apart" | "refused";

interface Crashes {
  readonly count: number;
  readonly lastMs: number;
}

/** Number of crashes of each content. A key covers files and settings: changed files are other content, without crashes. */
export class CrashRecord {
  readonly #limits: CrashLimits;
  /** Ordered by the last crash, the newest last. */
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

  /** Returns the number of crashes that are not forgotten. */
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
    return count >= this.#limits.apartAfter ? "apart" : "shared";
  }
}
