export interface CrashLimits {
  /** So many crashes of a content, and it runs in a process of its own. */
  readonly apartAfter: number;
  /** So many, and it does not run. */
  readonly refusedAfter: number;
  /** One crash is forgotten after each such time without another. */
  readonly forgetMs: number;
  /** Contents remembered; the one that crashed longest ago goes first. */
  readonly contentsMax: number;
}

/** Where content may run, given how often it has ended the process it ran in. */
export type Verdict = "shared" | "apart" | "refused";

interface Crashes {
  readonly count: number;
  readonly lastMs: number;
}

/**
 * How often each content has ended the process it ran in. Content is what its key says, files and settings: changed files are other
 * content and begin anew.
 */
export class CrashRecord {
  readonly #limits: CrashLimits;
  /** The one that crashed last comes last. */
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

  /** Crashes that are not forgotten. */
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
