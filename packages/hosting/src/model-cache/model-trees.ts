import type { UnpackedArchive } from "../objects/index.ts";

/** One version of one target model: what its tree is unpacked from, and the id under which the container knows it. */
export interface ModelArchive {
  readonly id: string;
  readonly target: string;
  readonly etag: string;
  readonly archiveBytes: number;
}

/** A tree that an earlier life of the platform has unpacked. */
export interface KeptTree {
  readonly target: string;
  readonly etag: string;
  readonly archiveBytes: number;
  readonly tree: UnpackedArchive;
}

/**
 * The unpacked models of one instance, where its container sees them as `/opt/ml/models/<id>/model`. Who asks decides what is there
 * and counts its bytes; every implementation passes `model-trees.contract.ts`.
 */
export interface ModelTrees {
  /** Those that an earlier life of the platform has left whole, last unpacked last. To be asked once, before anything else. */
  adopt(): Promise<readonly KeptTree[]>;
  /**
   * Unpacks an archive that is not there yet, and remembers it for the platform's next life. Null when the object is not (any more) of
   * that version. `onProgress` may throw to end it (a quota); its error is what the call rejects with, else ArchiveError. Without a
   * tree nothing is left.
   */
  unpack(
    model: ModelArchive,
    options: { readonly signal: AbortSignal; readonly onProgress: (expandedBytes: number) => void },
  ): Promise<UnpackedArchive | null>;
  /** Whether it is still as it was unpacked. Throws ArchiveError where it cannot be read. */
  isWhole(id: string, tree: UnpackedArchive, signal: AbortSignal): Promise<boolean>;
  /** At once out of the container's sight and forgotten: the same id may be unpacked again while this still frees its bytes. */
  remove(id: string, tree: UnpackedArchive): Promise<void>;
}
