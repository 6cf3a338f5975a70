import { InferenceError } from "@galatea/base";
import type { DeviceBytes, MemoryDevice } from "../backends/index.ts";

/** What was charged for, by identity. */
export interface ChargeOwner {
  readonly namespace: string;
}

/**
 * What loading may cost, on each device. A load reserves its estimate first (the last measured cost of the same content, else the caller's
 * guess), so that concurrent loads cannot pass a budget together, and is corrected by measurement afterwards.
 * The refusal's reason is `out-of-memory`: the container contract turns that into 507.
 */
export class MemoryBudget {
  /** A device that is not named has no bound. */
  readonly #budgets: DeviceBytes;
  readonly #charges = new Map<ChargeOwner, DeviceBytes>();
  readonly #used = new Map<MemoryDevice, number>();
  readonly #learned = new Map<string, DeviceBytes>();
  readonly #learnedMax: number;

  constructor(budgets: DeviceBytes, learnedMax: number) {
    this.#budgets = budgets;
    this.#learnedMax = learnedMax;
  }

  budgetBytes(device: MemoryDevice): number | null {
    return this.#budgets.get(device) ?? null;
  }

  usedBytes(device: MemoryDevice): number {
    return this.#used.get(device) ?? 0;
  }

  /** What the namespace's models are charged with. */
  usedBytesOf(namespace: string, device: MemoryDevice): number {
    let bytes = 0;
    for (const [owner, charged] of this.#charges) if (owner.namespace === namespace) bytes += charged.get(device) ?? 0;
    return bytes;
  }

  /**
   * Charges `owner` with what the backend knows it will cost, else with what `contentKey` cost last time, else with the guess;
   * throws UNAVAILABLE when that does not fit.
   */
  reserve(
    owner: ChargeOwner,
    what: string,
    cost: { readonly known: DeviceBytes | null; readonly contentKey: string; readonly guess: DeviceBytes },
  ): void {
    this.#admit(owner, what, cost.known ?? this.#learned.get(cost.contentKey) ?? cost.guess);
  }

  /** Reserves these bytes for `owner`. Throws UNAVAILABLE when they do not fit. */
  reserveBytes(owner: ChargeOwner, what: string, bytes: DeviceBytes): void {
    this.#admit(owner, what, bytes);
  }

  /** Replaces the estimate by the measured cost and remembers it; throws UNAVAILABLE, nothing charged, when it does not fit after all. */
  settle(owner: ChargeOwner, what: string, contentKey: string, measured: DeviceBytes): void {
    this.release(owner);
    this.#learned.delete(contentKey);
    this.#learned.set(contentKey, measured);
    if (this.#learned.size > this.#learnedMax) {
      const oldest = this.#learned.keys().next().value;
      if (oldest !== undefined) this.#learned.delete(oldest);
    }
    this.#admit(owner, what, measured);
  }

  /** A later measurement of something already loaded: never refused, it is there. */
  correct(owner: ChargeOwner, measured: DeviceBytes): void {
    if (!this.#charges.has(owner)) return;
    this.release(owner);
    this.#charge(owner, measured);
  }

  release(owner: ChargeOwner): void {
    for (const [device, bytes] of this.#charges.get(owner) ?? [])
      this.#used.set(device, this.usedBytes(device) - bytes);
    this.#charges.delete(owner);
  }

  #admit(owner: ChargeOwner, what: string, cost: DeviceBytes): void {
    for (const [device, bytes] of cost) {
      const budget = this.budgetBytes(device);
      if (budget === null || this.usedBytes(device) + bytes <= budget) continue;
      const [where, cure] =
        device === "machine"
          ? ["", " or raise --memory-budget-bytes (of an endpoint: choose a larger InstanceType)"]
          : [` of ${device}`, ", or place some on another GPU"];
      throw new InferenceError(
        "UNAVAILABLE",
        `Out of memory: ${what} needs about ${bytes} bytes${where}, ${this.usedBytes(device)} of the budget of ${budget} bytes are in use. ` +
          `Unload other models${cure}.`,
        { reason: "out-of-memory" },
      );
    }
    this.#charge(owner, cost);
  }

  #charge(owner: ChargeOwner, cost: DeviceBytes): void {
    for (const [device, bytes] of cost) this.#used.set(device, this.usedBytes(device) + bytes);
    this.#charges.set(owner, cost);
  }
}
