/** A caller that waits for a slot at a step. */
export interface GateWaiter {
  /** Called when the slot is the waiter's; the waiter releases it with `leave`. */
  admitted(): void;
}

/** Limits the concurrent requests of each step of an ensemble. Others wait in order of arrival. */
export class StepGates {
  readonly #inflightMax: number;
  readonly #counts: number[];
  readonly #waiting: readonly Set<GateWaiter>[];

  /** `inflightMax` 0: no limit. */
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

  /** Takes a slot if there is one. */
  enter(step: number): boolean {
    const count = this.#counts[step] as number;
    if (count >= this.#inflightMax) return false;
    this.#counts[step] = count + 1;
    return true;
  }

  /** Waits for a slot, after earlier waiters. */
  wait(step: number, waiter: GateWaiter): void {
    this.#waiting[step]?.add(waiter);
  }

  leave(step: number): void {
    const waiting = this.#waiting[step] as Set<GateWaiter>;
    for (const next of waiting) {
      waiting.delete(next);
      next.admitted();
      return;
    }
    this.#counts[step] = (this.#counts[step] as number) - 1;
  }

  giveUp(step: number, waiter: GateWaiter): void {
    this.#waiting[step]?.delete(waiter);
  }
}

/** A step that passes several gates, one after another. */
export class WaitingStep implements GateWaiter {
  readonly #step: number;
  readonly #gates: readonly StepGates[];
  readonly #admit: () => void;
  /** Number of gates passed. */
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

  /** Stops waiting. Slots already acquired are not released: they belong to gates of the ended run. */
  giveUp(): void {
    this.#gates[this.#passedCount]?.giveUp(this.#step, this);
  }
}
