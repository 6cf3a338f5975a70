import { crc32, inflateRawSync } from "node:zlib";
import { InferenceError } from "../base/index.ts";

/** What files of an archive may have together once they are inflated. */
const inflatedBytesMax = 2 ** 30;
const entriesMax = 4096;

const endSignature = 0x06054b50;
const centralSignature = 0x02014b50;
const localSignature = 0x04034b50;
const endBytes = 22;
const commentBytesMax = 0xffff;

/** Reads files of a zip archive by name, each when it is asked for. Nothing is allocated for what the archive only announces. */
export class ZipArchive {
  readonly #bytes: Uint8Array;
  readonly #view: DataView;
  readonly #entries = new Map<string, ZipEntry>();
  #inflatedBytes = 0;

  /** Throws InferenceError where the bytes are no archive, or one with encrypted or 64-bit parts. */
  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
    this.#view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    this.#readDirectory();
  }

  get names(): readonly string[] {
    return [...this.#entries.keys()];
  }

  has(name: string): boolean {
    return this.#entries.has(name);
  }

  read(name: string): Uint8Array {
    const entry = this.#entries.get(name);
    if (entry === undefined) throw brokenZip(`has no file '${name}'`);
    const packed = this.#packedBytes(entry, name);
    if (entry.isEncrypted) throw new InferenceError("UNSUPPORTED", `'${name}' of the archive is encrypted`);
    this.#inflatedBytes += entry.byteLength;
    if (this.#inflatedBytes > inflatedBytesMax) {
      throw new InferenceError("UNSUPPORTED", `the archive's files have more than ${inflatedBytesMax} bytes`);
    }
    const content = entry.method === 0 ? packed : inflated(packed, entry, name);
    if (content.length !== entry.byteLength) throw brokenZip(`says that '${name}' has ${entry.byteLength} bytes`);
    if (crc32(content) !== entry.crc) throw brokenZip(`has a '${name}' that is damaged`);
    return content;
  }

  #readDirectory(): void {
    const end = this.#endRecord();
    const count = this.#view.getUint16(end + 10, true);
    let at = this.#view.getUint32(end + 16, true);
    if (count > entriesMax) throw new InferenceError("UNSUPPORTED", `the archive has more than ${entriesMax} files`);
    for (let index = 0; index < count; index += 1) {
      if (at + 46 > this.#bytes.length || this.#view.getUint32(at, true) !== centralSignature) {
        throw brokenZip("has a broken directory");
      }
      const nameBytes = this.#view.getUint16(at + 28, true);
      const nameEnd = at + 46 + nameBytes;
      if (nameEnd > this.#bytes.length) throw brokenZip("has a broken directory");
      const name = new TextDecoder().decode(this.#bytes.subarray(at + 46, nameEnd));
      if (this.#entries.has(name)) throw brokenZip(`has two files '${name}'`);
      this.#entries.set(name, {
        isEncrypted: (this.#view.getUint16(at + 8, true) & 1) === 1,
        method: this.#view.getUint16(at + 10, true),
        crc: this.#view.getUint32(at + 16, true),
        packedBytes: this.#view.getUint32(at + 20, true),
        byteLength: this.#view.getUint32(at + 24, true),
        headerAt: this.#view.getUint32(at + 42, true),
      });
      at = nameEnd + this.#view.getUint16(at + 30, true) + this.#view.getUint16(at + 32, true);
    }
  }

  /** The record at the end of an archive, behind which only a comment may stand. */
  #endRecord(): number {
    const lowest = Math.max(0, this.#bytes.length - endBytes - commentBytesMax);
    for (let at = this.#bytes.length - endBytes; at >= lowest; at -= 1) {
      if (this.#view.getUint32(at, true) === endSignature) return at;
    }
    throw brokenZip("is no zip archive");
  }

  #packedBytes({ headerAt, packedBytes }: ZipEntry, name: string): Uint8Array {
    if (headerAt + 30 > this.#bytes.length || this.#view.getUint32(headerAt, true) !== localSignature) {
      throw brokenZip(`has no '${name}' where its directory says`);
    }
    const start = headerAt + 30 + this.#view.getUint16(headerAt + 26, true) + this.#view.getUint16(headerAt + 28, true);
    if (start + packedBytes > this.#bytes.length) throw brokenZip(`ends within '${name}'`);
    return this.#bytes.subarray(start, start + packedBytes);
  }
}

interface ZipEntry {
  readonly isEncrypted: boolean;
  readonly method: number;
  readonly crc: number;
  readonly packedBytes: number;
  readonly byteLength: number;
  readonly headerAt: number;
}

function inflated(packed: Uint8Array, { method, byteLength }: ZipEntry, name: string): Uint8Array {
  if (method !== 8) throw new InferenceError("UNSUPPORTED", `'${name}' of the archive is packed with method ${method}`);
  try {
    // One byte more than announced is enough to see that the announcement is wrong.
    return inflateRawSync(packed, { maxOutputLength: byteLength + 1 });
  } catch (error) {
    throw new InferenceError("INVALID_ARG", `the archive has a '${name}' that cannot be inflated`, { cause: error });
  }
}

function brokenZip(what: string): InferenceError {
  return new InferenceError("INVALID_ARG", `the archive ${what}`);
}
