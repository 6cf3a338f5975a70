import type { Clock } from "./clock.ts";

/** A simulated clock that a test advances. Before `advance` returns, it fires all due timers in order. */
export class SteppedClock implements Clock {
  #nowMs = Date.UTC(2026, 10, 22, 8, 59, 40, 5);
  readonly #timers = new Set<{ readonly dueMs: number; readonly fire: () => void }>();

  epochMs(): number {
    return this.#nowMs;
  }

  monotonicNs(): number {
    return this.#nowMs * 1e6;
  }

  timer(delayMs: number, fire: () => void): Disposable {
    const timer = { dueMs: this.#nowMs + delayMs, fire };
    this.#timers.add(timer);
    return { [Symbol.dispose]: () => void this.#timers.delete(timer) };
  }

  advance(byMs: number): void {
    this.#nowMs += byMs;
    for (const timer of [...this.#timers].toSorted((a, b) => a.dueMs - b.dueMs)) {
      if (timer.dueMs <= this.#nowMs && this.#timers.delete(timer)) timer.fire();
    }
  }
}
