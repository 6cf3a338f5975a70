import { type Clock, systemClock } from "./clock.ts";

/** The system's clock, but for timers of one length: these fire when a test says so. */
export class HeldTimersClock implements Clock {
  readonly #heldDelayMs: number;
  readonly #held = new Set<() => void>();

  constructor(heldDelayMs: number) {
    this.#heldDelayMs = heldDelayMs;
  }

  /** Timers that wait for `fireHeld`. */
  get heldCount(): number {
    return this.#held.size;
  }

  epochMs(): number {
    return systemClock.epochMs();
  }

  monotonicNs(): number {
    return systemClock.monotonicNs();
  }

  timer(delayMs: number, fire: () => void): Disposable {
    if (delayMs !== this.#heldDelayMs) return systemClock.timer(delayMs, fire);
    this.#held.add(fire);
    return { [Symbol.dispose]: () => void this.#held.delete(fire) };
  }

  fireHeld(): void {
    for (const fire of this.#held) {
      this.#held.delete(fire);
      fire();
    }
  }
}
