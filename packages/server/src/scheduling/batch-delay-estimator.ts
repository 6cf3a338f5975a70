/** Minimum fixed cost of an execution for which a batch waits. */
const fixedCostMinNs = 500_000;
/** Weight of an observation after the next one. */
const memory = 0.97;
/**
 * Share of an execution's fixed cost that a batch may wait for more requests when they are on time, and in addition when they are late.
 */
const usualShare = 0.8;
const lateShare = 0.2;
/** Number of distinct batch sizes; larger batches count as the largest. */
const sizesMax = 256;

/**
 * Estimates whether it pays to let a free instance wait for a moment.
 *
 * Clients that send one request after another return soon after their batch has ended. When they return at two different times, two
 * groups alternate at the instance for ever, and each execution pays the cost that does not depend on the batch (reading the weights,
 * waking threads): the MiniLM encoder takes 2.9 ms for one sentence and 5.5 ms for eight.
 *
 * The cost of an execution is therefore fitted as fixed + perRequest * requests, and the time is recorded after which as many requests as
 * a batch had have arrived again. A batch waits for those that are due when that takes less than the fixed cost that it saves.
 */
export class BatchDelayEstimator {
  /** Sums of weights, sizes, durations, squared sizes, and sizes times durations. */
  #weight = 0;
  #sizes = 0;
  #durations = 0;
  #squares = 0;
  #products = 0;
  /** Time after which as many requests as a batch had have arrived again, by that number; 0 when unknown. */
  readonly #returnNs = new Float64Array(sizesMax);
  #endedNs = 0;
  #endedCount = 0;
  #missing = 0;
  #fixedNs = 0;

  /**
   * Records an execution that has ended, before the requests of its batch settle. `durationNs` is null for one that failed: it may have
   * ended early, and does not tell what a batch costs.
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

  /** Returns the time until which a batch waits for requests that are due; null when it does not wait. */
  waitUntilNs(nowNs: number): number | null {
    const usual = this.#usualReturnNs();
    if (this.#missing === 0 || usual === 0) return null;
    const dueNs = this.#endedNs + usual;
    const fixed = this.#fixedCostNs();
    if (fixed < fixedCostMinNs || dueNs - nowNs > fixed * usualShare) return null;
    const untilNs = dueNs + Math.min(usual, fixed) * lateShare;
    if (nowNs < untilNs) return untilNs;
    // The requests did not return: their clients are slower now, or gone.
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

  /** Returns the fitted cost for size 0. While all sizes are equal, the previous value. */
  #fixedCostNs(): number {
    const spread = this.#weight * this.#squares - this.#sizes * this.#sizes;
    if (spread < 0.01 * this.#weight * this.#squares) return this.#fixedNs;
    const slope = (this.#weight * this.#products - this.#sizes * this.#durations) / spread;
    this.#fixedNs = Math.max(0, (this.#durations - slope * this.#sizes) / this.#weight);
    return this.#fixedNs;
  }
}
