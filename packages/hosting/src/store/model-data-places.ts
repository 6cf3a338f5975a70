import { parseS3Uri } from "../definitions/index.ts";

/** An object, or the prefix of some. */
interface Place {
  readonly bucket: string;
  readonly key: string;
}

interface PlacesOfBucket {
  /** How many models lie at each key or prefix. */
  readonly counts: Map<string, number>;
  /** How many such keys are of each length: there are few lengths, and a key is looked at once for each. */
  readonly lengths: Map<number, number>;
}

/** Where the data of models lies. Whether an object belongs to it is told without a look at every model. */
export class ModelDataPlaces {
  readonly #buckets = new Map<string, PlacesOfBucket>();

  add(url: string): void {
    const place = parseS3Uri(url);
    if (place === null) return;
    const { bucket, key } = place;
    const places = this.#buckets.get(bucket) ?? { counts: new Map(), lengths: new Map() };
    this.#buckets.set(bucket, places);
    if (count(places.counts, key, 1) === 1) count(places.lengths, key.length, 1);
  }

  /** One that was added. */
  remove(url: string): void {
    const place = parseS3Uri(url);
    if (place === null) return;
    const { bucket, key } = place;
    const places = this.#buckets.get(bucket);
    if (places === undefined) return;
    if (count(places.counts, key, -1) === 0) count(places.lengths, key.length, -1);
    if (places.counts.size === 0) this.#buckets.delete(bucket);
  }

  /** Whether that is one of the objects, or below one of the prefixes. */
  cover({ bucket, key }: Place): boolean {
    const places = this.#buckets.get(bucket);
    if (places === undefined) return false;
    for (const length of places.lengths.keys()) {
      if (length <= key.length && places.counts.has(key.slice(0, length))) return true;
    }
    return false;
  }
}

/** What there is of it now; nothing is kept of what there is none of. */
function count<Key>(counts: Map<Key, number>, key: Key, change: number): number {
  const left = (counts.get(key) ?? 0) + change;
  if (left > 0) counts.set(key, left);
  else counts.delete(key);
  return left;
}
