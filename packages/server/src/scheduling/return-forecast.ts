/** Executions whose every run costs less than this, whatever its batch, gain nothing by waiting. */
const fixedCostMinNs = 500_000;
/** What an observation still weighs when the next one comes. */
const memory = 0.97;
/** Of an execution's fixed cost, the part that waiting for company may take when all goes as usual, and the rest when it does not. */
const usualShare = 0.8;
const lateShare = 0.2;
/** Batches of as many requests and more are kept as one size. */
const sizesMax = 256;

/**
 * Whether it pays to let a free instance wait a moment, learned from what happens.
 *
 * Clients that send one request after the other come back soon after the batch they were in has ended. When they do so at two
 * different times, two groups take turns at the instance for ever, and each execution pays again what does not depend on the
 * batch (reading the weights, waking threads): the MiniLM encoder takes 2.9 ms for one sentence and 5.5 ms for eight. So the
 * cost of an execution is fitted as fixed + perRequest * requests, and the time is kept after which as many requests as a batch had
 * have arrived again. A batch waits for those that are due when that takes less than the fixed cost it saves.
 */
export class ReturnForecast {
  /** Sums of weights, sizes, durations, squared sizes, and sizes times durations. */
  #weight = 0;
  #sizes = 0;
  #durations = 0;
  #squares = 0;
  #products = 0;
  /** By the number of requests in a batch: after how long as many have arrived again; 0 where that is not known. */
  readonly #returnNs = new Float64Array(sizesMax);
  #endedNs = 0;
  #endedCount = 0;
  #missing = 0;
  #fixedNs = 0;

  /** An execution has ended, and the requests of its batch are about to settle. */
  ended(requestCount: number, durationNs: number, nowNs: number): void {
    this.#weight = this.#weight * memory + 1;
    this.#sizes = this.#sizes * memory + requestCount;
    this.#durations = this.#durations * memory + durationNs;
    this.#squares = this.#squares * memory + requestCount * requestCount;
    this.#products = this.#products * memory + requestCount * durationNs;
    this.#endedNs = nowNs;
    this.#endedCount = requestCount;
    this.#missing = requestCount;
  }

  arrived(nowNs: number): void {
    if (this.#missing === 0) return;
    this.#missing--;
    if (this.#missing > 0) return;
    const usual = this.#usualReturnNs();
    const returnNs = nowNs - this.#endedNs;
    this.#returnNs[this.#place()] = usual === 0 ? returnNs : usual * 0.75 + returnNs * 0.25;
  }

  /** Until when a batch of what has arrived shall wait for what is due; null when it shall not. */
  waitUntilNs(nowNs: number): number | null {
    const usual = this.#usualReturnNs();
    if (this.#missing === 0 || usual === 0) return null;
    const dueNs = this.#endedNs + usual;
    const fixed = this.#fixedCostNs();
    if (fixed < fixedCostMinNs || dueNs - nowNs > fixed * usualShare) return null;
    const untilNs = dueNs + Math.min(usual, fixed) * lateShare;
    if (nowNs < untilNs) return untilNs;
    // They did not come: whoever they were is slower now, or gone.
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

  /** The straight line through sizes and durations, at size 0. While all sizes are alike, what it was before. */
  #fixedCostNs(): number {
    const spread = this.#weight * this.#squares - this.#sizes * this.#sizes;
    if (spread < 0.01 * this.#weight * this.#squares) return this.#fixedNs;
    const slope = (this.#weight * this.#products - this.#sizes * this.#durations) / spread;
    this.#fixedNs = Math.max(0, (this.#durations - slope * this.#sizes) / this.#weight);
    return this.#fixedNs;
  }
}
