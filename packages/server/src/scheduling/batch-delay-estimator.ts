/** A batch waits only when the estimated fixed cost of an execution is at least this. */
const fixedCostMinNs = 500_000;
/** Factor by which the weight of earlier observations shrinks with each new one. */
const memory = 0.97;
/**
 * Limits of the wait as fractions of the fixed cost: `usualShare` up to the expected return of the clients, and `lateShare` in addition
 * when the clients are late.
 */
const usualShare = 0.8;
const lateShare = 0.2;
/** Number of batch sizes with a separate return time. A larger batch shares the entry of the largest size. */
const sizesMax = 256;

/**
 * Estimates whether a free instance should wait for more requests.
 *
 * A client that sends one request after another sends the next one soon after its batch has ended. Without a wait, such clients can split
 * into two groups that alternate at the instance for ever. Each execution then pays the cost that does not depend on the batch size, such
 * as reading weights and waking threads: MiniLM takes 2.9 ms for one sentence and 5.5 ms for eight.
 *
 * The estimator fits the cost of an execution as fixed + perRequest * requests. It also measures the return time: the time from the end of
 * a batch until the same number of requests has arrived. A batch waits for returning clients when the expected wait is shorter than the
 * fixed cost that it saves.
 */
export class BatchDelayEstimator {
  /** Weighted sums for the fit: of weights, sizes, durations, squared sizes, and sizes times durations. */
  #weight = 0;
  #sizes = 0;
  #durations = 0;
  #squares = 0;
  #products = 0;
  /** Return times in nanoseconds by batch size: the time until as many requests have arrived as the batch had. 0 when unknown. */
  readonly #returnNs = new Float64Array(sizesMax);
  #endedNs = 0;
  #endedCount = 0;
  #missing = 0;
  #fixedNs = 0;

  /**
   * Records an execution that has ended, before the requests of its batch settle. `durationNs` is null for a failed execution, whose
   * duration would distort the fitted cost.
   */
  ended(requestCount: number, durationNs: number | null, nowNs: number): void {
    if (durationNs !== null) this.#fit(requestCount, durationNs);
    this.#endedNs = nowNs;
    this.#endedCount = requestCount;
    this.#missing = requestCount;
  }

  #fit(requestCount: number, durationNs: number): void {
    this.#weight = this.#weight * memory + 1;
    this.#sizes = this.#sizes * memory + requestCount;
    this.#durations = this.#durations * memory + durationNs;
    this.#squares = this.#squares * memory + requestCount * requestCount;
    this.#products = this.#products * memory + requestCount * durationNs;
  }

  arrived(nowNs: number): void {
    if (this.#missing === 0) return;
    this.#missing--;
    if (this.#missing > 0) return;
    const usual = this.#usualReturnNs();
    const returnNs = nowNs - this.#endedNs;
    this.#returnNs[this.#place()] = usual === 0 ? returnNs : usual * 0.75 + returnNs * 0.25;
  }

  /** Returns the time until which a batch waits for returning clients; null when it does not wait. */
  waitUntilNs(nowNs: number): number | null {
    const usual = this.#usualReturnNs();
    if (this.#missing === 0 || usual === 0) return null;
    const dueNs = this.#endedNs + usual;
    const fixed = this.#fixedCostNs();
    if (fixed < fixedCostMinNs || dueNs - nowNs > fixed * usualShare) return null;
    const untilNs = dueNs + Math.min(usual, fixed) * lateShare;
    if (nowNs < untilNs) return untilNs;
    // The clients did not return in the expected time: they have become slower or have disconnected.
    this.#returnNs[this.#place()] = usual * 2;
    this.#missing = 0;
    return null;
  }

  #usualReturnNs(): number {
    return this.#returnNs[this.#place()] as number;
  }

  #place(): number {
    return Math.min(this.#endedCount, sizesMax - 1);
  }

  /** Returns the fitted cost of an execution of size 0; the previous value while all observed sizes are equal. */
  #fixedCostNs(): number {
    const spread = this.#weight * this.#squares - this.#sizes * this.#sizes;
    if (spread < 0.01 * this.#weight * this.#squares) return this.#fixedNs;
    const slope = (this.#weight * this.#products - this.#sizes * this.#durations) / spread;
    this.#fixedNs = Math.max(0, (this.#durations - slope * this.#sizes) / this.#weight);
    return this.#fixedNs;
  }
}
