import { createHash } from "node:crypto";
import { constants, write, type BigIntStats } from "node:fs";
import { lstat, open, type FileHandle } from "node:fs/promises";
import { promisify } from "node:util";
import { openSealableMemory, type SealableMemory } from "@galatea/base/system";

/**
 * The content of a model's file in memory that all workers with an equal file share. Mapping the file on disk would be unsafe. If another
 * file is copied over it, a running model would see changed bytes, or crash if the new file is shorter.
 */
export interface SharedFile extends Disposable {
  /**
   * Sealed memory file. A process with this descriptor can read the file and map it privately. The descriptor is open until all users have
   * disposed the file.
   */
  readonly fd: number;
  readonly byteLength: number;
  /** Bytes that are charged to this user. All bytes are charged to the oldest user, and none to others. */
  readonly chargedBytes: number;
  /** Called when this user becomes the oldest one, to which the bytes are charged. */
  onCharged: (() => void) | null;
}

interface LeasedFile {
  readonly memory: SealableMemory;
  readonly byteLength: number;
  readonly contentHash: string;
  /** Identities of the files with this content. Equal files share one entry. */
  readonly identities: Set<string>;
  /** Users, the oldest first. */
  readonly holders: Set<SharedFile>;
}

export interface SharedFilesOptions {
  /** Limit of the total size of all files in bytes. A file that exceeds it is not shared. */
  readonly bytesMax: number;
  /** Minimum size of a shared file in bytes. Sharing smaller files does not save the cost of a descriptor. */
  readonly fileBytesMin: number;
}

/** Bytes that are hashed in one event loop tick. */
const chunkBytes = 256 * 1024;
const writeTo = promisify(write);

/** Files in shared memory, by content. A file is released when its last user disposes it. */
export class SharedFiles {
  readonly #options: SharedFilesOptions;
  readonly #byIdentity = new Map<string, LeasedFile>();
  readonly #byContent = new Map<string, LeasedFile>();
  /** Reads in progress, by file identity. */
  readonly #reading = new Map<string, Promise<unknown>>();
  #bytes = 0;

  constructor(options: SharedFilesOptions) {
    this.#options = options;
  }

  /**
   * Returns the shared content of a file; the caller must dispose it. Returns null if the worker must read the file itself: the file is not
   * a regular file (links are not followed), is too small, exceeds the limit, or changes while it is read.
   */
  async open(path: string): Promise<SharedFile | null> {
    const source = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK).catch(() => null);
    if (source === null) return null;
    try {
      const found = await source.stat({ bigint: true });
      if (!found.isFile() || found.size < BigInt(this.#options.fileBytesMin)) return null;
      const identity = identityOf(found);
      for (;;) {
        const lease = this.#byIdentity.get(identity);
        if (lease !== undefined) return this.#lend(lease);
        const reading = this.#reading.get(identity);
        if (reading === undefined) break;
        // If the read failed, or its file was disposed before this call continues, the file is read again.
        await reading.catch(() => null);
      }
      const reading = this.#read(source, identity, Number(found.size)).finally(() => this.#reading.delete(identity));
      this.#reading.set(identity, reading);
      return await reading;
    } finally {
      await source.close();
    }
  }

  /**
   * Returns the size of the file if it is already in shared memory, otherwise 0. Equal files under other names are not recognized, because
   * that would require reading them.
   */
  async leasedBytesOf(path: string): Promise<number> {
    const found = await lstat(path, { bigint: true }).catch(() => null);
    return found === null ? 0 : (this.#byIdentity.get(identityOf(found))?.byteLength ?? 0);
  }

  /** Total size in bytes of all files in shared memory. */
  get bytes(): number {
    return this.#bytes;
  }

  async #read(source: FileHandle, identity: string, byteLength: number): Promise<SharedFile | null> {
    // The size is reserved before the first byte is read, so that concurrent reads do not exceed the limit.
    if (this.#bytes + byteLength > this.#options.bytesMax) return null;
    this.#bytes += byteLength;
    let memory: SealableMemory | null = null;
    let kept = false;
    try {
      memory = openSealableMemory("galatea-model-file");
      const contentHash = await copy(source, memory.fd, byteLength);
      if (contentHash === null || identityOf(await source.stat({ bigint: true })) !== identity) return null;
      const equal = this.#byContent.get(contentHash);
      if (equal !== undefined) {
        equal.identities.add(identity);
        this.#byIdentity.set(identity, equal);
        return this.#lend(equal);
      }
      memory.seal();
      const lease: LeasedFile = {
        memory,
        byteLength,
        contentHash,
        identities: new Set([identity]),
        holders: new Set(),
      };
      this.#byContent.set(contentHash, lease);
      this.#byIdentity.set(identity, lease);
      kept = true;
      return this.#lend(lease);
    } finally {
      if (!kept) {
        memory?.close();
        this.#bytes -= byteLength;
      }
    }
  }

  #lend(lease: LeasedFile): SharedFile {
    const { memory, byteLength, holders } = lease;
    const lent: SharedFile = {
      fd: memory.fd,
      byteLength,
      get chargedBytes() {
        const [oldest] = holders;
        return oldest === lent ? byteLength : 0;
      },
      onCharged: null,
      [Symbol.dispose]: () => {
        const wasCharged = lent.chargedBytes > 0;
        if (!holders.delete(lent)) return;
        const [next] = holders;
        if (next === undefined) this.#drop(lease);
        else if (wasCharged) next.onCharged?.();
      },
    };
    holders.add(lent);
    return lent;
  }

  #drop(lease: LeasedFile): void {
    for (const identity of lease.identities) this.#byIdentity.delete(identity);
    this.#byContent.delete(lease.contentHash);
    this.#bytes -= lease.byteLength;
    lease.memory.close();
  }
}

/**
 * Returns an identity of the file: device, inode, size, and the times of birth and modification. The time of the last status change is not
 * used, because a new hard link changes it.
 */
function identityOf({ dev, ino, size, mtimeNs, birthtimeNs }: BigIntStats): string {
  return `${dev}:${ino}:${size}:${mtimeNs}:${birthtimeNs}`;
}

/** Copies exactly `byteLength` bytes and returns their hash; null if the file is shorter. */
async function copy(source: FileHandle, target: number, byteLength: number): Promise<string | null> {
  const hash = createHash("sha256");
  const chunk = Buffer.allocUnsafeSlow(Math.min(chunkBytes, byteLength));
  for (let at = 0; at < byteLength;) {
    const { bytesRead } = await source.read(chunk, 0, Math.min(chunk.byteLength, byteLength - at), at);
    if (bytesRead === 0) return null;
    hash.update(chunk.subarray(0, bytesRead));
    for (let written = 0; written < bytesRead;)
      written += (await writeTo(target, chunk, written, bytesRead - written, at + written)).bytesWritten;
    at += bytesRead;
  }
  return hash.digest("hex");
}
