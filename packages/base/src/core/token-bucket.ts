import type { Clock } from "./clock.ts";

/** Limits of a token bucket: a sustained rate and the size of a burst. */
export interface TokenBucketLimits {
  readonly bytesPerSecondMax: number;
  readonly burstBytesMax: number;
}

/** A token bucket with one token per byte. It is full at first and is refilled over time. */
export class TokenBucket {
  readonly #limits: TokenBucketLimits;
  readonly #clock: Clock;
  #tokens: number;
  #refilledAtNs: number;

  constructor(clock: Clock, limits: TokenBucketLimits) {
    this.#clock = clock;
    this.#limits = limits;
    this.#tokens = limits.burstBytesMax;
    this.#refilledAtNs = clock.monotonicNs();
  }

  /** Consumes `byteLength` tokens and returns true. If there are fewer, consumes none and returns false. */
  tryConsume(byteLength: number): boolean {
    this.#refill();
    if (byteLength > this.#tokens) return false;
    this.#tokens -= byteLength;
    return true;
  }

  /** Consumes `byteLength` tokens even if there are fewer. The balance is then negative. */
  consume(byteLength: number): void {
    this.#refill();
    this.#tokens -= byteLength;
  }

  /** Milliseconds until the balance is positive again; 0 if it already is. */
  get waitMs(): number {
    this.#refill();
    return this.#tokens > 0 ? 0 : Math.ceil((1000 * -this.#tokens) / this.#limits.bytesPerSecondMax) + 1;
  }

  #refill(): void {
    const { bytesPerSecondMax, burstBytesMax } = this.#limits;
    const nowNs = this.#clock.monotonicNs();
    const grownBytes = ((nowNs - this.#refilledAtNs) / 1e9) * bytesPerSecondMax;
    this.#tokens = Math.min(burstBytesMax, this.#tokens + grownBytes);
    this.#refilledAtNs = nowNs;
  }
}
