/** Somebody who waits for a place at a step. */
export interface GateWaiter {
  /** The place is the waiter's now; it gives it back with `leave`. */
  admitted(step: number): void;
}

/**
 * Back-pressure of an ensemble (`max_inflight_requests`): at each step at most so many requests, of all the ensemble's, at a time.
 * The others wait in order of arrival. A request waits at most once at each step, so the waiting are bounded as requests are.
 */
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

  /** True: come in. False: `admitted` is called when there is a place. */
  enter(step: number, waiter: GateWaiter): boolean {
    const count = this.#counts[step] as number;
    if (count >= this.#inflightMax) {
      this.#waiting[step]?.add(waiter);
      return false;
    }
    this.#counts[step] = count + 1;
    return true;
  }

  leave(step: number): void {
    const waiting = this.#waiting[step] as Set<GateWaiter>;
    for (const next of waiting) {
      waiting.delete(next);
      next.admitted(step);
      return;
    }
    this.#counts[step] = (this.#counts[step] as number) - 1;
  }

  giveUp(waiter: GateWaiter): void {
    for (const waiting of this.#waiting) waiting.delete(waiter);
  }
}
