/** The limits on one archive. An archive that exceeds a limit is rejected; nothing is truncated. */
export interface ArchiveLimits {
  readonly expandedBytesMax: number;
  readonly entryCountMax: number;
  /** Maximum UTF-8 bytes of a complete path. One component has at most 255 bytes, as in file systems. */
  readonly pathBytesMax: number;
  readonly depthMax: number;
  /**
   * Maximum ratio of expanded to compressed bytes. It is checked only above `expansionBytesFree`, because small texts
   * compress far better than weights.
   */
  readonly expansionRatioMax: number;
  readonly expansionBytesFree: number;
}

export const archiveLimits: ArchiveLimits = {
  expandedBytesMax: 512 * 2 ** 30,
  entryCountMax: 200_000,
  pathBytesMax: 4000,
  depthMax: 64,
  expansionRatioMax: 200,
  expansionBytesFree: 64 * 2 ** 20,
};

/**
 * The cause of an ArchiveError. `damaged`: not a gzip or tar stream, a bad checksum, or an early end. `unsafe`: a path,
 * link or entry type that could reach outside the destination. `clash`: two entries for one path. `limit`: one of
 * `ArchiveLimits` is exceeded. `space`: the disk or the quota is full. `io`: another file system error.
 */
export type ArchiveErrorReason = "damaged" | "unsafe" | "clash" | "limit" | "space" | "io";

export class ArchiveError extends Error {
  readonly reason: ArchiveErrorReason;

  constructor(reason: ArchiveErrorReason, message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = "ArchiveError";
    this.reason = reason;
  }

  static from(thrown: unknown): ArchiveError {
    if (thrown instanceof ArchiveError) return thrown;
    const error = thrown instanceof Error ? thrown : new Error(String(thrown));
    const code = (error as NodeJS.ErrnoException).code ?? "";
    if (code === "ENOSPC" || code === "EDQUOT") {
      return new ArchiveError("space", "No space left on device", { cause: error });
    }
    if (code === "Z_BUF_ERROR") {
      return new ArchiveError("damaged", "the archive ends before its last entry is complete", { cause: error });
    }
    if (code.startsWith("Z_")) {
      return new ArchiveError("damaged", `the archive is not in gzip format or is damaged: ${error.message}`, {
        cause: error,
      });
    }
    return new ArchiveError("io", `unpacking failed: ${error.message}`, { cause: error });
  }
}

/** A file that is stored once for all archives that contain it. The id is the SHA-256 of its bytes. */
export interface SharedContent {
  readonly id: string;
  readonly byteLength: number;
}

export interface UnpackedArchive {
  /** Paths relative to the destination, in the archive's order. */
  readonly files: readonly { readonly path: string; readonly byteLength: number; readonly sha256: string }[];
  /** The archive's directories (`linkTarget` is null) and symbolic links. */
  readonly places: readonly { readonly path: string; readonly linkTarget: string | null }[];
  readonly expandedBytes: number;
  /**
   * Bytes of files that belong to this tree alone. Files in `contents` are excluded, because other trees may share
   * them.
   */
  readonly ownBytes: number;
  readonly contents: readonly SharedContent[];
  /** SHA-256 over paths and content hashes: equal for archives that unpack to the same tree. */
  readonly fingerprint: string;
}
