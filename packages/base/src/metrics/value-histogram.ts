/** Ratio of two neighbouring bucket bounds. A value that is read differs from the recorded value by at most 1.5 %. */
const growth = 1.03;
const logGrowth = Math.log(growth);
/** Number of the bucket for zero and negative values, below all other buckets. */
const zeroBucket = -32_768;
/**
 * Maximum number of buckets. Above it, the two lowest buckets are merged, so that high percentiles stay within 1.5 %.
 */
const bucketsMax = 160;
const entryBytes = 10;

/**
 * A bounded distribution of values. It has logarithmic buckets in ascending order, and stores only those that are not
 * empty.
 */
export class ValueHistogram {
  #buckets: number[] = [];
  #counts: number[] = [];

  /** Estimated memory in bytes. */
  get byteLength(): number {
    return this.#buckets.length * 16;
  }

  add(value: number, count: number): void {
    this.#addBucket(value > 0 ? Math.max(zeroBucket + 1, Math.ceil(Math.log(value) / logGrowth)) : zeroBucket, count);
  }

  merge(other: ValueHistogram): void {
    for (const [index, bucket] of other.#buckets.entries()) this.#addBucket(bucket, other.#counts[index] as number);
  }

  /** Returns a value that the first `rank` samples (1-based, in ascending order) do not exceed. */
  valueAt(rank: number): number {
    let seen = 0;
    for (const [index, bucket] of this.#buckets.entries()) {
      seen += this.#counts[index] as number;
      if (seen >= rank) return middleOf(bucket);
    }
    return middleOf(this.#buckets.at(-1) ?? zeroBucket);
  }

  /** Encodes each bucket as its int16 number and its float64 count, little-endian. */
  encode(): Uint8Array {
    const bytes = new Uint8Array(this.#buckets.length * entryBytes);
    const view = new DataView(bytes.buffer);
    for (const [index, bucket] of this.#buckets.entries()) {
      view.setInt16(index * entryBytes, bucket, true);
      view.setFloat64(index * entryBytes + 2, this.#counts[index] as number, true);
    }
    return bytes;
  }

  static decode(bytes: Uint8Array): ValueHistogram {
    const histogram = new ValueHistogram();
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    for (let at = 0; at + entryBytes <= bytes.byteLength; at += entryBytes) {
      histogram.#addBucket(view.getInt16(at, true), view.getFloat64(at + 2, true));
    }
    return histogram;
  }

  #addBucket(bucket: number, count: number): void {
    const buckets = this.#buckets;
    let low = 0;
    let high = buckets.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((buckets[middle] as number) < bucket) low = middle + 1;
      else high = middle;
    }
    if (buckets[low] === bucket) this.#counts[low] = (this.#counts[low] as number) + count;
    else {
      buckets.splice(low, 0, bucket);
      this.#counts.splice(low, 0, count);
      if (buckets.length > bucketsMax) this.#joinLowest();
    }
  }

  #joinLowest(): void {
    const lowest = this.#counts.shift() as number;
    this.#buckets.shift();
    this.#counts[0] = (this.#counts[0] as number) + lowest;
  }
}

function middleOf(bucket: number): number {
  return bucket === zeroBucket ? 0 : Math.exp((bucket - 0.5) * logGrowth);
}
