import type { StatisticSet, StoredPoint } from "./series.ts";
import { ValueHistogram } from "./value-histogram.ts";

/**
 * Statistics of one period of a series. If all values are equal, there is no histogram, because minimum and maximum
 * describe the values.
 */
export class MetricPoint implements StatisticSet {
  readonly startMs: number;
  readonly periodMs: number;
  sampleCount = 0;
  sum = 0;
  minimum = 0;
  maximum = 0;
  #histogram: ValueHistogram | null = null;
  /** False after a statistic set was added. Its individual values are unknown, so percentiles are null from then on. */
  #hasDistribution = true;

  constructor(startMs: number, periodMs: number) {
    this.startMs = startMs;
    this.periodMs = periodMs;
  }

  get histogramBytes(): number {
    return this.#histogram?.byteLength ?? 0;
  }

  add(value: number, count: number): void {
    if (this.sampleCount === 0) this.minimum = this.maximum = value;
    else if (this.#histogram === null && (value !== this.minimum || value !== this.maximum)) this.#createHistogram();
    this.#histogram?.add(value, count);
    this.sampleCount += count;
    this.sum += value * count;
    if (value < this.minimum) this.minimum = value;
    if (value > this.maximum) this.maximum = value;
  }

  addSet(set: StatisticSet): void {
    if (set.sampleCount === 0) return;
    if (set.minimum === set.maximum) return this.add(set.minimum, set.sampleCount);
    this.#dropHistogram();
    this.#addSums(set);
  }

  merge(other: MetricPoint): void {
    if (other.sampleCount === 0) return;
    if (other.#histogram === null) return this.#mergeWithoutHistogram(other);
    if (this.#histogram === null && this.#hasDistribution) this.#createHistogram();
    this.#histogram?.merge(other.#histogram);
    this.#addSums(other);
  }

  /**
   * Returns a percentile with an error of at most 1.5 %: a value that `fraction` of the samples do not exceed. Null if
   * only sums are known.
   */
  percentile(fraction: number): number | null {
    if (this.sampleCount === 0 || !this.#hasDistribution) return null;
    if (this.#histogram === null) return this.minimum;
    const value = this.#histogram.valueAt(Math.max(1, Math.ceil(fraction * this.sampleCount)));
    return Math.min(this.maximum, Math.max(this.minimum, value));
  }

  encodeHistogram(): Uint8Array | null {
    if (!this.#hasDistribution) return null;
    return this.#histogram?.encode() ?? new Uint8Array(0);
  }

  static restore(stored: StoredPoint): MetricPoint {
    const point = new MetricPoint(stored.startMs, stored.periodMs);
    point.#addSums(stored);
    point.#hasDistribution = stored.histogram !== null;
    if (stored.histogram !== null && stored.histogram.byteLength > 0) {
      point.#histogram = ValueHistogram.decode(stored.histogram);
    }
    return point;
  }

  #mergeWithoutHistogram(other: MetricPoint): void {
    if (other.#hasDistribution) return this.add(other.minimum, other.sampleCount);
    this.#dropHistogram();
    this.#addSums(other);
  }

  #addSums(set: StatisticSet): void {
    this.minimum = this.sampleCount === 0 ? set.minimum : Math.min(this.minimum, set.minimum);
    this.maximum = this.sampleCount === 0 ? set.maximum : Math.max(this.maximum, set.maximum);
    this.sampleCount += set.sampleCount;
    this.sum += set.sum;
  }

  #createHistogram(): void {
    if (!this.#hasDistribution) return;
    this.#histogram = new ValueHistogram();
    if (this.sampleCount > 0) this.#histogram.add(this.minimum, this.sampleCount);
  }

  #dropHistogram(): void {
    this.#hasDistribution = false;
    this.#histogram = null;
  }
}
