import { type Clock, systemClock } from "./clock.ts";

/** The system's clock, except that timers with the delay `manualDelayMs` fire only when a test calls `fireTimers`. */
export class ManualTimersClock implements Clock {
  readonly #manualDelayMs: number;
  readonly #pendingTimers = new Set<() => void>();

  constructor(heldDelayMs: number) {
    this.#manualDelayMs = heldDelayMs;
  }

  /** Number of timers that wait for `fireTimers`. */
  get pendingTimerCount(): number {
    return this.#pendingTimers.size;
  }

  epochMs(): number {
    return systemClock.epochMs();
  }

  monotonicNs(): number {
    return systemClock.monotonicNs();
  }

  timer(delayMs: number, fire: () => void): Disposable {
    if (delayMs !== this.#manualDelayMs) return systemClock.timer(delayMs, fire);
    this.#pendingTimers.add(fire);
    return { [Symbol.dispose]: () => void this.#pendingTimers.delete(fire) };
  }

  fireTimers(): void {
    for (const fire of this.#pendingTimers) {
      this.#pendingTimers.delete(fire);
      fire();
    }
  }
}
