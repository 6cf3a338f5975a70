import { createHash } from "node:crypto";
import { constants, write, type BigIntStats } from "node:fs";
import { lstat, open, type FileHandle } from "node:fs/promises";
import { promisify } from "node:util";
import { openSealableMemory, type SealableMemory } from "@galatea/base/system";

/**
 * The bytes of a model's file, in memory that all workers with an equal file share. A mapping of the file on disk would change under a
 * running model when another file is copied over it, and crash the model if that one is shorter.
 */
export interface SharedFile extends Disposable {
  /** Sealed: a process with this descriptor can read, and map privately. Open until all users have disposed the file. */
  readonly fd: number;
  readonly byteLength: number;
  /** Bytes that this user is charged with: all of them for the oldest user, else none. */
  readonly chargedBytes: number;
  /** Called when this user becomes the oldest, because the charged one was disposed. */
  onCharged: (() => void) | null;
}

interface Held {
  readonly memory: SealableMemory;
  readonly byteLength: number;
  readonly contentHash: string;
  /** Identities under which the file was found: equal files have one entry and several identities. */
  readonly identities: Set<string>;
  /** Users, the oldest first. */
  readonly holders: Set<SharedFile>;
}

export interface SharedFilesOptions {
  /** Limit of all files together; a file over the limit is not shared. */
  readonly bytesMax: number;
  /** Smaller files do not justify a descriptor. */
  readonly fileBytesMin: number;
}

/** Bytes hashed in one event loop tick. */
const pieceBytes = 256 * 1024;
const writeTo = promisify(write);

/** Files by content, kept while they are used. */
export class SharedFiles {
  readonly #options: SharedFilesOptions;
  readonly #byIdentity = new Map<string, Held>();
  readonly #byContent = new Map<string, Held>();
  /** Pending reads by identity. */
  readonly #reading = new Map<string, Promise<unknown>>();
  #bytes = 0;

  constructor(options: SharedFilesOptions) {
    this.#options = options;
  }

  /**
   * Returns the file of the path, which the caller disposes; null when it is not a regular file (links are not followed), is small, does
   * not fit the limit, or changes while it is read: then a worker reads it itself.
   */
  async open(path: string): Promise<SharedFile | null> {
    const source = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK).catch(() => null);
    if (source === null) return null;
    try {
      const found = await source.stat({ bigint: true });
      if (!found.isFile() || found.size < BigInt(this.#options.fileBytesMin)) return null;
      const identity = identityOf(found);
      for (;;) {
        const held = this.#byIdentity.get(identity);
        if (held !== undefined) return this.#lend(held);
        const reading = this.#reading.get(identity);
        if (reading === undefined) break;
        // The read may have failed, or its file may be disposed before this call continues: then it is read again.
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
   * Returns the size of the path's file when it is in memory already, else 0. Copies under other names are not recognized, which would
   * require reading them.
   */
  async heldBytesOf(path: string): Promise<number> {
    const found = await lstat(path, { bigint: true }).catch(() => null);
    return found === null ? 0 : (this.#byIdentity.get(identityOf(found))?.byteLength ?? 0);
  }

  /** Number of bytes in memory. */
  get bytes(): number {
    return this.#bytes;
  }

  async #read(source: FileHandle, identity: string, byteLength: number): Promise<SharedFile | null> {
    // Reserved before the first byte, so that concurrent reads do not count on the same free memory.
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
      const held: Held = { memory, byteLength, contentHash, identities: new Set([identity]), holders: new Set() };
      this.#byContent.set(contentHash, held);
      this.#byIdentity.set(identity, held);
      kept = true;
      return this.#lend(held);
    } finally {
      if (!kept) {
        memory?.close();
        this.#bytes -= byteLength;
      }
    }
  }

  #lend(held: Held): SharedFile {
    const { memory, byteLength, holders } = held;
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
        if (next === undefined) this.#drop(held);
        else if (wasCharged) next.onCharged?.();
      },
    };
    holders.add(lent);
    return lent;
  }

  #drop(held: Held): void {
    for (const identity of held.identities) this.#byIdentity.delete(identity);
    this.#byContent.delete(held.contentHash);
    this.#bytes -= held.byteLength;
    held.memory.close();
  }
}

/** Returns device, inode, size and the times of birth and modification. Not the time of change: a new hard link changes it. */
function identityOf({ dev, ino, size, mtimeNs, birthtimeNs }: BigIntStats): string {
  return `${dev}:${ino}:${size}:${mtimeNs}:${birthtimeNs}`;
}

/** Copies exactly `byteLength` bytes; returns their hash, or null when the file has fewer. */
async function copy(source: FileHandle, target: number, byteLength: number): Promise<string | null> {
  const hash = createHash("sha256");
  const piece = Buffer.allocUnsafeSlow(Math.min(pieceBytes, byteLength));
  for (let at = 0; at < byteLength;) {
    const { bytesRead } = await source.read(piece, 0, Math.min(piece.byteLength, byteLength - at), at);
    if (bytesRead === 0) return null;
    hash.update(piece.subarray(0, bytesRead));
    for (let written = 0; written < bytesRead;)
      written += (await writeTo(target, piece, written, bytesRead - written, at + written)).bytesWritten;
    at += bytesRead;
  }
  return hash.digest("hex");
}
