import type { Clock } from "@galatea/base";
import { eventually } from "@galatea/base/core/eventually-fixture.ts";

interface ArmedTimer {
  readonly dueMs: number;
  readonly fire: () => void;
}

/** A manual clock for periodic loops. */
export class UpkeepClock implements Clock {
  ms: number;
  readonly #armed = new Set<ArmedTimer>();

  constructor(ms: number) {
    this.ms = ms;
  }

  epochMs(): number {
    return this.ms;
  }

  monotonicNs(): number {
    return this.ms * 1e6;
  }

  timer(delayMs: number, fire: () => void): Disposable {
    const timer = { dueMs: this.ms + delayMs, fire };
    this.#armed.add(timer);
    return { [Symbol.dispose]: () => void this.#armed.delete(timer) };
  }

  /** Advances the time. Resolves when each loop whose timer fired has started its next timer. */
  async passTo(ms: number): Promise<void> {
    this.ms = ms;
    const loopCount = this.#armed.size;
    for (const timer of [...this.#armed].filter(({ dueMs }) => dueMs <= ms)) {
      this.#armed.delete(timer);
      timer.fire();
    }
    await eventually(() => this.#armed.size >= loopCount);
  }
}
