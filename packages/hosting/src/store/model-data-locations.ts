import { parseS3Uri } from "../definitions/index.ts";

/** An object, or a prefix. */
interface Place {
  readonly bucket: string;
  readonly key: string;
}

interface BucketLocations {
  /** Number of models at each key or prefix. */
  readonly counts: Map<string, number>;
  /** Number of such keys by length: there are few lengths, and a lookup tests each of them once. */
  readonly lengths: Map<number, number>;
}

/** The locations of all models' data. A lookup does not iterate over the models. */
export class ModelDataLocations {
  readonly #buckets = new Map<string, BucketLocations>();

  add(url: string): void {
    const place = parseS3Uri(url);
    if (place === null) return;
    const { bucket, key } = place;
    const places = this.#buckets.get(bucket) ?? { counts: new Map(), lengths: new Map() };
    this.#buckets.set(bucket, places);
    if (count(places.counts, key, 1) === 1) count(places.lengths, key.length, 1);
  }

  /** Removes a location that was added. */
  remove(url: string): void {
    const place = parseS3Uri(url);
    if (place === null) return;
    const { bucket, key } = place;
    const places = this.#buckets.get(bucket);
    if (places === undefined) return;
    if (count(places.counts, key, -1) === 0) count(places.lengths, key.length, -1);
    if (places.counts.size === 0) this.#buckets.delete(bucket);
  }

  /** Returns whether that is one of the objects, or below one of the prefixes. */
  cover({ bucket, key }: Place): boolean {
    const places = this.#buckets.get(bucket);
    if (places === undefined) return false;
    for (const length of places.lengths.keys()) {
      if (length <= key.length && places.counts.has(key.slice(0, length))) return true;
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
