import { InferenceError } from "@galatea/base";
import type { DeviceBytes, MemoryDevice } from "../backends/index.ts";

/** The model that memory is charged to. Compared by identity. */
export interface ChargeOwner {
  readonly namespace: string;
}

/**
 * Memory budgets for models, on each device. A load first reserves an estimate: the measured cost of an earlier load of the same content,
 * otherwise a guess. Concurrent loads therefore cannot exceed a budget together. After the load, the estimate is replaced by the measured
 * cost. A rejected load has the reason `out-of-memory`, which the container API maps to status 507.
 */
export class MemoryBudget {
  /** A device without an entry has no limit. */
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

  /** Returns the bytes that the namespace's models are charged with. */
  usedBytesOf(namespace: string, device: MemoryDevice): number {
    let bytes = 0;
    for (const [owner, charged] of this.#charges) if (owner.namespace === namespace) bytes += charged.get(device) ?? 0;
    return bytes;
  }

  /**
   * Charges `owner` with the backend's estimate; without one, with the last measured cost of `contentKey`; without that, with the guess.
   * Throws UNAVAILABLE when the charge exceeds the budget.
   */
  reserve(
    owner: ChargeOwner,
    what: string,
    cost: { readonly known: DeviceBytes | null; readonly contentKey: string; readonly guess: DeviceBytes },
  ): void {
    this.#admit(owner, what, cost.known ?? this.#learned.get(cost.contentKey) ?? cost.guess);
  }

  /** Charges `owner` with these bytes. Throws UNAVAILABLE when they exceed the budget. */
  reserveBytes(owner: ChargeOwner, what: string, bytes: DeviceBytes): void {
    this.#admit(owner, what, bytes);
  }

  /**
   * Replaces the estimate by the measured cost and stores it for later loads. When the measured cost exceeds the budget, removes the charge
   * and throws UNAVAILABLE.
   */
  setMeasured(owner: ChargeOwner, what: string, contentKey: string, measured: DeviceBytes): void {
    this.release(owner);
    this.#learned.delete(contentKey);
    this.#learned.set(contentKey, measured);
    if (this.#learned.size > this.#learnedMax) {
      const oldest = this.#learned.keys().next().value;
      if (oldest !== undefined) this.#learned.delete(oldest);
    }
    this.#admit(owner, what, measured);
  }

  /** Replaces the charge of a loaded model by a later measurement. Never fails, because the memory is already in use. */
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
