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

  add(location: OutputFolder): void {
    this.#change(location, 1);
  }

  /** Removes a folder that was added before. */
  remove(location: OutputFolder): void {
    this.#change(location, -1);
  }

  /** Returns the owners of an object's output prefix; null for an object that is no output. */
  find({ bucket, key }: { readonly bucket: string; readonly key: string }): OutputOwners | null {
    const locations = this.#buckets.get(bucket);
    if (locations === undefined) return null;
    // A prefix ends with a slash or is the whole bucket, so the key has one candidate for each of its slashes.
    for (let slash = key.lastIndexOf("/"); slash >= 0; slash = slash === 0 ? -1 : key.lastIndexOf("/", slash - 1)) {
      const prefix = key.slice(0, slash + 1);
      const counts = locations.get(prefix);
      if (counts !== undefined) return found(prefix, counts);
    }
    const complete = locations.get("");
    return complete === undefined ? null : found("", complete);
  }

  #change({ url, owner }: OutputFolder, by: 1 | -1): void {
    const location = parseS3Uri(url);
    if (location === null) return;
    const prefix = folderPrefix(location.key);
    const locations = this.#buckets.get(location.bucket) ?? new Map<string, OwnerCounts>();
    this.#buckets.set(location.bucket, locations);
    const counts = locations.get(prefix) ?? new Map<string, number>();
    locations.set(prefix, counts);
    const name = owner ?? "";
    const count = (counts.get(name) ?? 0) + by;
    if (count > 0) counts.set(name, count);
    else counts.delete(name);
    if (counts.size === 0) locations.delete(prefix);
    if (locations.size === 0) this.#buckets.delete(location.bucket);
  }
}

const found = (prefix: string, counts: OwnerCounts): OutputOwners => ({
  prefix,
  owners: new Set([...counts.keys()].filter((name) => name !== "")),
});
