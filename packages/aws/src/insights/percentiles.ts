/** Number of values that are kept exactly. */
const exactMax = 1000;
/** Ratio of two neighbouring bucket bounds. Percentiles of more than `exactMax` values have an error of at most 1 %. */
const growth = 1.02;
const logGrowth = Math.log(growth);
/** Offset that makes bucket numbers positive, even for values near zero. */
const shift = 40_000;

/**
 * Computes percentiles of any number of values in bounded memory: exactly up to `exactMax` values, then from
 * logarithmic buckets.
 */
export class PercentileEstimator {
  #values: number[] | null = [];
  readonly #buckets = new Map<number, number>();
  #count = 0;

  add(value: number): void {
    this.#count += 1;
    if (this.#values === null) return this.#addBucket(value);
    this.#values.push(value);
    if (this.#values.length <= exactMax) return;
    for (const each of this.#values) this.#addBucket(each);
    this.#values = null;
  }

  /** Returns the smallest value that is at least as large as `percent` of all values; null without values. */
  percentile(percent: number): number | null {
    if (this.#count === 0) return null;
    const rank = Math.max(1, Math.ceil((percent / 100) * this.#count));
    if (this.#values !== null) return this.#values.toSorted((a, b) => a - b)[rank - 1] ?? null;
    let seen = 0;
    for (const bucket of [...this.#buckets.keys()].toSorted((a, b) => a - b)) {
      seen += this.#buckets.get(bucket) ?? 0;
      if (seen >= rank) return middleOf(bucket);
    }
    return null;
  }

  #addBucket(value: number): void {
    const bucket = value === 0 ? 0 : Math.sign(value) * (shift + Math.ceil(Math.log(Math.abs(value)) / logGrowth));
    this.#buckets.set(bucket, (this.#buckets.get(bucket) ?? 0) + 1);
  }
}

function middleOf(bucket: number): number {
  if (bucket === 0) return 0;
  return Math.sign(bucket) * Math.exp((Math.abs(bucket) - shift - 0.5) * logGrowth);
}
