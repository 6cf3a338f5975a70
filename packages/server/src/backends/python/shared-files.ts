import { createHash } from "node:crypto";
import { constants, write, type BigIntStats } from "node:fs";
import { lstat, open, type FileHandle } from "node:fs/promises";
import { promisify } from "node:util";
import { openSealableMemory, type SealableMemory } from "@galatea/base/system";

/**
 * The bytes of a model's file, in memory that all workers with an equal file share. What is mapped from a file on disk would change under a
 * running model when somebody copies another over it, and end the model where that one is shorter.
 */
export interface SharedFile extends Disposable {
  /** Sealed: whoever gets it can read, and map privately. Open as long as anybody holds the file. */
  readonly fd: number;
  readonly byteLength: number;
  /** What its holder is charged with: all of it where nobody has held it longer, else nothing. */
  readonly chargedBytes: number;
  /** Called when that becomes all of it, because the holder that was charged has let go. */
  onCharged: (() => void) | null;
}

interface Held {
  readonly memory: SealableMemory;
  readonly byteLength: number;
  readonly contentHash: string;
  /** By which the file was found: equal files have one entry and a name each. */
  readonly identities: Set<string>;
  /** The one that has held it longest first. */
  readonly holders: Set<SharedFile>;
}

export interface SharedFilesOptions {
  /** All that is held together; what does not fit is not shared. */
  readonly bytesMax: number;
  /** A smaller file is not worth a descriptor. */
  readonly fileBytesMin: number;
}

/** Hashed in one turn of the event loop. */
const pieceBytes = 256 * 1024;
const writeTo = promisify(write);

/** Files by content, held while somebody uses them. */
export class SharedFiles {
  readonly #options: SharedFilesOptions;
  readonly #byIdentity = new Map<string, Held>();
  readonly #byContent = new Map<string, Held>();
  /** By identity: resolves when it has been read, or not. */
  readonly #reading = new Map<string, Promise<unknown>>();
  #bytes = 0;

  constructor(options: SharedFilesOptions) {
    this.#options = options;
  }

  /**
   * The file of the path, which is the caller's to dispose of; null where there is no such regular file (links are not followed), where it
   * is small, where there is no room for it, or where it changes while it is read: then a worker reads for itself.
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
        // Whoever reads it may have failed, or have let go of it before this call goes on: then it is read again.
        await reading.catch(() => null);
      }
      const reading = this.#read(source, identity, Number(found.size)).finally(() => this.#reading.delete(identity));
      this.#reading.set(identity, reading);
      return await reading;
    } finally {
      await source.close();
    }
  }

  /** Of the file of the path, what somebody holds already: all or nothing. Of a copy under another name only reading it would tell. */
  async heldBytesOf(path: string): Promise<number> {
    const found = await lstat(path, { bigint: true }).catch(() => null);
    return found === null ? 0 : (this.#byIdentity.get(identityOf(found))?.byteLength ?? 0);
  }

  /** What is held now. */
  get bytes(): number {
    return this.#bytes;
  }

  async #read(source: FileHandle, identity: string, byteLength: number): Promise<SharedFile | null> {
    // Taken before the first byte, so that files that are read at the same time do not count on the same room.
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

/** Device, inode, size and the times of birth and modification. Not the time of change: another name for the file moves it. */
function identityOf({ dev, ino, size, mtimeNs, birthtimeNs }: BigIntStats): string {
  return `${dev}:${ino}:${size}:${mtimeNs}:${birthtimeNs}`;
}

/** Copies exactly `byteLength` bytes; their hash, or null where the file has fewer. */
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
