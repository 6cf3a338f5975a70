import type { Clock } from "./clock.ts";

/** How much is let through: so much a second over time, and after a pause more of it at once. */
export interface ByteRateLimits {
  readonly bytesPerSecondMax: number;
  readonly burstBytesMax: number;
}

/** A token bucket: full at first, and filled again with time. */
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

  /** Takes that many bytes out, or none where there are not as many. */
  takes(byteLength: number): boolean {
    this.#fill();
    if (byteLength > this.#bytes) return false;
    this.#bytes -= byteLength;
    return true;
  }

  /** So many are through, which may be more than there were left: then some are owed. */
  take(byteLength: number): void {
    this.#fill();
    this.#bytes -= byteLength;
  }

  /** Until nothing is owed; zero for at once. */
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
