import { parseS3Uri } from "../definitions/index.ts";

/** An S3 object, or a prefix of objects. */
interface Location {
  readonly bucket: string;
  readonly key: string;
}

interface BucketLocations {
  /** Number of models at each key or prefix. */
  readonly counts: Map<string, number>;
  /** Number of prefixes of each length. A lookup tests one substring of a key for each length, and there are few lengths. */
  readonly lengths: Map<number, number>;
}

/** The S3 locations of all models' data. The time of a lookup does not depend on the number of models. */
export class ModelDataLocations {
  readonly #buckets = new Map<string, BucketLocations>();

  add(url: string): void {
    const location = parseS3Uri(url);
    if (location === null) return;
    const { bucket, key } = location;
    const locations = this.#buckets.get(bucket) ?? { counts: new Map(), lengths: new Map() };
    this.#buckets.set(bucket, locations);
    if (count(locations.counts, key, 1) === 1) count(locations.lengths, key.length, 1);
  }

  /** Removes a location that was added before. */
  remove(url: string): void {
    const location = parseS3Uri(url);
    if (location === null) return;
    const { bucket, key } = location;
    const locations = this.#buckets.get(bucket);
    if (locations === undefined) return;
    if (count(locations.counts, key, -1) === 0) count(locations.lengths, key.length, -1);
    if (locations.counts.size === 0) this.#buckets.delete(bucket);
  }

  /** Returns true if an object is one of the added objects, or has one of the added prefixes. */
  covers({ bucket, key }: Location): boolean {
    const locations = this.#buckets.get(bucket);
    if (locations === undefined) return false;
    for (const length of locations.lengths.keys()) {
      if (length <= key.length && locations.counts.has(key.slice(0, length))) return true;
    }
    return false;
  }
}

/** Changes a count; removes the entry at zero. */
function count<Key>(counts: Map<Key, number>, key: Key, change: number): number {
  const left = (counts.get(key) ?? 0) + change;
  if (left > 0) counts.set(key, left);
  else counts.delete(key);
  return left;
}
