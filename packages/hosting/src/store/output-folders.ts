import { folderPrefix, parseS3Uri } from "../definitions/index.ts";

/** An S3 prefix below which the platform writes outputs: captured data, asynchronous responses, transform results. */
export interface OutputFolder {
  readonly url: string;
  /**
   * Name of the endpoint or transform job that writes the outputs. Null for a folder that several owners share, each
   * with its own prefix below the folder.
   */
  readonly owner: string | null;
}

/** The innermost output prefix that contains an object, and the names of the endpoints and jobs that write below it. */
export interface OutputOwners {
  readonly prefix: string;
  readonly owners: ReadonlySet<string>;
}

/** Number of times that each owner was added. The owner null is counted with the key "". */
type OwnerCounts = Map<string, number>;

/** The S3 prefixes of all outputs, with their owners. */
export class OutputFolders {
  readonly #buckets = new Map<string, Map<string, OwnerCounts>>();

  add(place: OutputFolder): void {
    this.#change(place, 1);
  }

  /** Removes a folder that was added before. */
  remove(place: OutputFolder): void {
    this.#change(place, -1);
  }

  /** Returns the owners of an object's output prefix; null for an object that is no output. */
  find({ bucket, key }: { readonly bucket: string; readonly key: string }): OutputOwners | null {
    const places = this.#buckets.get(bucket);
    if (places === undefined) return null;
    // A prefix ends with a slash or is the whole bucket, so the key has one candidate for each of its slashes.
    for (let slash = key.lastIndexOf("/"); slash >= 0; slash = slash === 0 ? -1 : key.lastIndexOf("/", slash - 1)) {
      const prefix = key.slice(0, slash + 1);
      const counts = places.get(prefix);
      if (counts !== undefined) return found(prefix, counts);
    }
    const whole = places.get("");
    return whole === undefined ? null : found("", whole);
  }

  #change({ url, owner }: OutputFolder, by: 1 | -1): void {
    const place = parseS3Uri(url);
    if (place === null) return;
    const prefix = folderPrefix(place.key);
    const places = this.#buckets.get(place.bucket) ?? new Map<string, OwnerCounts>();
    this.#buckets.set(place.bucket, places);
    const counts = places.get(prefix) ?? new Map<string, number>();
    places.set(prefix, counts);
    const name = owner ?? "";
    const count = (counts.get(name) ?? 0) + by;
    if (count > 0) counts.set(name, count);
    else counts.delete(name);
    if (counts.size === 0) places.delete(prefix);
    if (places.size === 0) this.#buckets.delete(place.bucket);
  }
}

const found = (prefix: string, counts: OwnerCounts): OutputOwners => ({
  prefix,
  owners: new Set([...counts.keys()].filter((name) => name !== "")),
});
