import type { Clock } from "./clock.ts";

/** Limits of a token bucket: a sustained rate and the size of a burst. */
export interface ByteRateLimits {
  readonly bytesPerSecondMax: number;
  readonly burstBytesMax: number;
}

/** A token bucket: full at first, refilled over time. */
export class ByteRate {
  readonly #limits: ByteRateLimits;
  readonly #clock: Clock;
  #bytes: number;
  #filledAtNs: number;

  constructor(clock: Clock, limits: ByteRateLimits) {
    this.#clock = clock;
    this.#limits = limits;
    this.#bytes = limits.burstBytesMax;
    this.#filledAtNs = clock.monotonicNs();
  }

  /** Takes `byteLength` tokens and returns true; takes none and returns false when there are fewer. */
  takes(byteLength: number): boolean {
    this.#fill();
    if (byteLength > this.#bytes) return false;
    this.#bytes -= byteLength;
    return true;
  }

  /** Takes `byteLength` tokens even when there are fewer; the balance is then negative. */
  take(byteLength: number): void {
    this.#fill();
    this.#bytes -= byteLength;
  }

  /** Time until the balance is no longer negative; 0 when it is not. */
  get waitMs(): number {
    this.#fill();
    return this.#bytes > 0 ? 0 : Math.ceil((1000 * -this.#bytes) / this.#limits.bytesPerSecondMax) + 1;
  }

  #fill(): void {
    const { bytesPerSecondMax, burstBytesMax } = this.#limits;
    const nowNs = this.#clock.monotonicNs();
    const grownBytes = ((nowNs - this.#filledAtNs) / 1e9) * bytesPerSecondMax;
    this.#bytes = Math.min(burstBytesMax, this.#bytes + grownBytes);
    this.#filledAtNs = nowNs;
  }
}
