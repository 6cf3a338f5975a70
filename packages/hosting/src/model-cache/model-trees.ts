import type { UnpackedArchive } from "../objects/index.ts";

/** One version of one target model: its archive, and its id in the container. */
export interface ModelArchive {
  readonly id: string;
  readonly target: string;
  readonly etag: string;
  readonly archiveBytes: number;
}

/** A tree that a previous run of the platform unpacked. */
export interface AdoptableTree {
  readonly target: string;
  readonly etag: string;
  readonly archiveBytes: number;
  readonly tree: UnpackedArchive;
}

/**
 * The archives of one multi-model container and their unpacked trees. The container sees a tree as `/opt/ml/models/<id>/model`. The caller decides which
 * trees exist and counts their bytes. Every implementation passes `model-trees.contract.ts`.
 */
export interface UnpackedModels {
  /** `headAgeMsMax` of the object store that has the archives. */
  readonly headAgeMsMax: number;
  /** Resolves with the complete trees of a previous run, in the order in which they were unpacked. Call once, before any other method. */
  adopt(): Promise<readonly AdoptableTree[]>;
  /** Resolves with the current ETag and length of a target's archive; null when there is no such object. */
  find(target: string, signal: AbortSignal): Promise<{ readonly etag: string; readonly byteLength: number } | null>;
  /**
   * Unpacks an archive that has no tree yet, and records the tree for the next run of the platform. Resolves with null if the object has another
   * version. Rejects with ArchiveError, or with the error that `onProgress` throws, for example to enforce a quota. After an error or null, no files are
   * left.
   */
  unpack(
    model: ModelArchive,
    options: { readonly signal: AbortSignal; readonly onProgress: (expandedBytes: number) => void },
  ): Promise<UnpackedArchive | null>;
  /** Resolves with true if the files have not changed since they were unpacked. Rejects with ArchiveError if they cannot be read. */
  isWhole(id: string, tree: UnpackedArchive, signal: AbortSignal): Promise<boolean>;
  /** Hides the tree from the container synchronously, then deletes its files. The same id can be unpacked again meanwhile. */
  remove(id: string, tree: UnpackedArchive): Promise<void>;
}
