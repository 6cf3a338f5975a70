import type { Clock } from "@galatea/base";

/** Delays from this length on use a timer. Shorter ones poll the event loop, because timers have a resolution of milliseconds. */
const timerMsMin = 1.5;

/**
 * Calls a function at a time of the monotonic clock, accurate to well under a millisecond. A queue delay is often 100 us, which a timer
 * alone would extend to 1 or 2 ms. I/O continues while the event loop is polled. Polling takes no CPU time from executions, because at
 * least one instance is idle whenever a batch waits.
 */
export class WakeUp implements Disposable {
  readonly #clock: Clock;
  readonly #fire: () => void;
  #atNs = Number.POSITIVE_INFINITY;
  #timer: Disposable | null = null;
  #immediate: NodeJS.Immediate | null = null;

  constructor(clock: Clock, fire: () => void) {
    this.#clock = clock;
    this.#fire = fire;
  }

  /** Sets the time, replacing the previous one. */
  set(atNs: number): void {
    if (atNs === this.#atNs) return;
    this[Symbol.dispose]();
    this.#atNs = atNs;
    this.#arm();
  }

  [Symbol.dispose](): void {
    this.#timer?.[Symbol.dispose]();
    this.#timer = null;
    if (this.#immediate !== null) clearImmediate(this.#immediate);
    this.#immediate = null;
    this.#atNs = Number.POSITIVE_INFINITY;
  }

  #arm(): void {
    const remainingMs = (this.#atNs - this.#clock.monotonicNs()) / 1e6;
    if (remainingMs >= timerMsMin) this.#timer = this.#clock.timer(Math.floor(remainingMs), () => this.#turn());
    else this.#immediate = setImmediate(() => this.#turn());
  }

  #turn(): void {
    this.#timer = null;
    this.#immediate = null;
    if (this.#clock.monotonicNs() < this.#atNs) return this.#arm();
    this.#atNs = Number.POSITIVE_INFINITY;
    this.#fire();
  }
}
