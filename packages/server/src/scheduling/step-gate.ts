/** A caller that waits for a slot of a step. */
export interface GateWaiter {
  /** Called when the waiter has got the slot, which it releases with `leave`. */
  admitted(): void;
}

/** Limits the concurrent requests to each step of an ensemble. Further requests wait in order of arrival. */
export class StepGates {
  readonly #inflightMax: number;
  readonly #counts: number[];
  readonly #waiting: readonly Set<GateWaiter>[];

  /** `inflightMax` is the limit of each step; 0 for none. */
  constructor(stepCount: number, inflightMax: number) {
    this.#inflightMax = inflightMax === 0 ? Number.POSITIVE_INFINITY : inflightMax;
    this.#counts = Array.from({ length: stepCount }, () => 0);
    this.#waiting = Array.from({ length: stepCount }, () => new Set());
  }

  get waitingCount(): number {
    let count = 0;
    for (const waiting of this.#waiting) count += waiting.size;
    return count;
  }

  /** Takes a slot if one is free; returns whether it did. */
  enter(step: number): boolean {
    const count = this.#counts[step] as number;
    if (count >= this.#inflightMax) return false;
    this.#counts[step] = count + 1;
    return true;
  }

  /** Waits for a slot, in order of arrival. */
  wait(step: number, waiter: GateWaiter): void {
    this.#waiting[step]?.add(waiter);
  }

  release(step: number): void {
    const waiting = this.#waiting[step] as Set<GateWaiter>;
    for (const next of waiting) {
      waiting.delete(next);
      next.admitted();
      return;
    }
    this.#counts[step] = (this.#counts[step] as number) - 1;
  }

  cancelWait(step: number, waiter: GateWaiter): void {
    this.#waiting[step]?.delete(waiter);
  }
}

/** A step that needs slots of several limits, which it acquires one after another. */
export class WaitingStep implements GateWaiter {
  readonly #step: number;
  readonly #gates: readonly StepGates[];
  readonly #admit: () => void;
  /** Number of acquired slots. */
  #passedCount = 0;

  constructor(step: number, gates: readonly StepGates[], admit: () => void) {
    this.#step = step;
    this.#gates = gates;
    this.#admit = admit;
  }

  begin(): void {
    while (this.#passedCount < this.#gates.length) {
      const gate = this.#gates[this.#passedCount] as StepGates;
      if (!gate.enter(this.#step)) return gate.wait(this.#step, this);
      this.#passedCount++;
    }
    this.#admit();
  }

  admitted(): void {
    this.#passedCount++;
    this.begin();
  }

  /** Stops waiting. Acquired slots are not released, because the run that the limits belong to has ended. */
  cancel(): void {
    this.#gates[this.#passedCount]?.cancelWait(this.#step, this);
  }
}
