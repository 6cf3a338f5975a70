import type { Clock } from "../../base/index.ts";

/**
 * How much of what shadow variants answer is read: so many bytes a second, and as many at once. Reading takes the time of those who wait
 * for answers, and how much a shadow answers is its own affair.
 */
export class AnswerAllowance {
  readonly #bytesPerSecond: number;
  readonly #clock: Clock;
  #leftBytes: number;
  #lookedNs: number;

  constructor(bytesPerSecond: number, clock: Clock) {
    this.#bytesPerSecond = bytesPerSecond;
    this.#clock = clock;
    this.#leftBytes = bytesPerSecond;
    this.#lookedNs = clock.monotonicNs();
  }

  /** So many bytes have been read, which may be more than there were left. */
  take(bytes: number): void {
    this.#look();
    this.#leftBytes -= bytes;
  }

  /** Until more may be read; zero for at once. */
  get waitMs(): number {
    this.#look();
    return this.#leftBytes > 0 ? 0 : Math.ceil((1000 * -this.#leftBytes) / this.#bytesPerSecond) + 1;
  }

  #look(): void {
    const nowNs = this.#clock.monotonicNs();
    const earned = (this.#bytesPerSecond * (nowNs - this.#lookedNs)) / 1e9;
    this.#leftBytes = Math.min(this.#bytesPerSecond, this.#leftBytes + earned);
    this.#lookedNs = nowNs;
  }
}
