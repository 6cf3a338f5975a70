/** Ratio of two neighbouring bucket bounds: a value that is read is within 1.5 % of the recorded one. */
const growth = 1.03;
const logGrowth = Math.log(growth);
/** The bucket of zero and of negative values, below all others. */
const zeroBucket = -32_768;
/** Maximum number of buckets. When there are more, the lowest two are merged, so that high percentiles stay within 1.5 %. */
const bucketsMax = 160;
const entryBytes = 10;

/** A bounded distribution of values: logarithmic buckets, only the non-empty ones, in ascending order. */
export class ValueHistogram {
  #buckets: number[] = [];
  #counts: number[] = [];

  /** Estimated memory. */
  get byteLength(): number {
    return this.#buckets.length * 16;
  }

  add(value: number, count: number): void {
    this.#addBucket(value > 0 ? Math.max(zeroBucket + 1, Math.ceil(Math.log(value) / logGrowth)) : zeroBucket, count);
  }

  merge(other: ValueHistogram): void {
    for (const [index, bucket] of other.#buckets.entries()) this.#addBucket(bucket, other.#counts[index] as number);
  }

  /** Returns a value that `rank` of the samples (1-based) do not exceed. */
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
