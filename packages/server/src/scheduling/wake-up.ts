import type { Clock } from "@galatea/base";

/** A timer is used down to here; below it, the event loop is turned, because timers count in whole milliseconds. */
const timerMsMin = 1.5;

/**
 * One call at a time of the monotonic clock, to well under a millisecond: queue delays of 100 us are common, and a timer alone
 * would make them 1 to 2 ms. IO goes on while the loop turns; an instance is idle meanwhile, so the turning takes nobody's core.
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

  /** Replaces the time that was set before. */
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
