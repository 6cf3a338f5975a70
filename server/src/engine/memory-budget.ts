import { InferenceError } from "../base/index.ts";

/** What was charged for, by identity. */
export interface ChargeOwner {
  readonly namespace: string;
}

/**
 * What loading may cost. A load reserves its estimate first (the last measured cost of the same content, else the caller's
 * guess), so that concurrent loads cannot pass the budget together, and is corrected by measurement afterwards.
 * The refusal's reason is `out-of-memory`: the container contract turns that into 507.
 */
export class MemoryBudget {
  readonly budgetBytes: number | null;
  readonly #charges = new Map<ChargeOwner, number>();
  readonly #learned = new Map<string, number>();
  readonly #learnedMax: number;
  #usedBytes = 0;

  constructor(budgetBytes: number | null, learnedMax: number) {
    this.budgetBytes = budgetBytes;
    this.#learnedMax = learnedMax;
  }

  get usedBytes(): number {
    return this.#usedBytes;
  }

  /** What the namespace's models are charged with. */
  usedBytesOf(namespace: string): number {
    let bytes = 0;
    for (const [owner, charged] of this.#charges) if (owner.namespace === namespace) bytes += charged;
    return bytes;
  }

  /**
   * Charges `owner` with what the backend knows it will cost, else with what `contentKey` cost last time, else with the guess;
   * throws UNAVAILABLE when that does not fit.
   */
  reserve(
    owner: ChargeOwner,
    what: string,
    cost: { readonly knownBytes: number | null; readonly contentKey: string; readonly guessBytes: number },
  ): void {
    const bytes = cost.knownBytes ?? this.#learned.get(cost.contentKey) ?? cost.guessBytes;
    this.#admit(owner, what, bytes);
  }

  /** Replaces the estimate by the measured cost and remembers it; throws UNAVAILABLE, nothing charged, when it does not fit after all. */
  settle(owner: ChargeOwner, what: string, contentKey: string, measuredBytes: number): void {
    this.release(owner);
    this.#learned.delete(contentKey);
    this.#learned.set(contentKey, measuredBytes);
    if (this.#learned.size > this.#learnedMax) {
      const oldest = this.#learned.keys().next().value;
      if (oldest !== undefined) this.#learned.delete(oldest);
    }
    this.#admit(owner, what, measuredBytes);
  }

  /** A later measurement of something already loaded: never refused, it is there. */
  correct(owner: ChargeOwner, measuredBytes: number): void {
    const charged = this.#charges.get(owner);
    if (charged === undefined) return;
    this.#usedBytes += measuredBytes - charged;
    this.#charges.set(owner, measuredBytes);
  }

  release(owner: ChargeOwner): void {
    this.#usedBytes -= this.#charges.get(owner) ?? 0;
    this.#charges.delete(owner);
  }

  #admit(owner: ChargeOwner, what: string, bytes: number): void {
    if (this.budgetBytes !== null && this.#usedBytes + bytes > this.budgetBytes) {
      throw new InferenceError(
        "UNAVAILABLE",
        `Out of memory: ${what} needs about ${bytes} bytes, ${this.#usedBytes} of the budget of ${this.budgetBytes} bytes are in use. ` +
          "Unload other models or raise --memory-budget-bytes.",
        { reason: "out-of-memory" },
      );
    }
    this.#usedBytes += bytes;
    this.#charges.set(owner, bytes);
  }
}
