import { crc32, inflateRawSync } from "node:zlib";
import { type ByteRange, zipData, zipDirectory, type ZipEntry, ZipError } from "./zip-directory.ts";

/** Maximum total size of the inflated files of an archive. */
const inflatedBytesMax = 2 ** 30;
const entriesMax = 4096;

/** Reads files of an in-memory zip archive by name, on demand. Declared sizes alone never cause an allocation. */
export class ZipArchive {
  readonly #bytes: Buffer;
  readonly #entries: ReadonlyMap<string, ZipEntry>;
  #inflatedBytes = 0;

  /** Throws ZipError for invalid bytes. */
  constructor(bytes: Uint8Array) {
    this.#bytes = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    const entries = this.#read(zipDirectory(bytes.byteLength, { entriesMax }));
    this.#entries = new Map(entries.map((entry) => [entry.name, entry]));
  }

  get names(): readonly string[] {
    return [...this.#entries.keys()];
  }

  has(name: string): boolean {
    return this.#entries.has(name);
  }

  /** Throws ZipError for a missing, damaged or encrypted file. */
  read(name: string): Uint8Array {
    const entry = this.#entries.get(name);
    if (entry === undefined) throw new ZipError(`has no file '${name}'`);
    const packed = this.#bytesOf(this.#read(zipData(entry, this.#bytes.byteLength)));
    if (entry.isEncrypted) throw new ZipError(`has '${name}' encrypted`, true);
    this.#inflatedBytes += entry.byteLength;
    if (this.#inflatedBytes > inflatedBytesMax)
      throw new ZipError(`has files of more than ${inflatedBytesMax} bytes`, true);
    const content = entry.method === 0 ? packed : inflated(packed, entry, name);
    if (content.length !== entry.byteLength)
      throw new ZipError(`declares a wrong length of '${name}', ${entry.byteLength} bytes`);
    if (crc32(content) !== entry.crc) throw new ZipError(`has a '${name}' that is damaged`);
    return content;
  }

  /** Runs a reader: supplies the bytes of each range that it yields. */
  #read<Result>(reader: Generator<ByteRange, Result, Buffer>): Result {
    let step = reader.next();
    while (step.done !== true) step = reader.next(this.#bytesOf(step.value));
    return step.value;
  }

  #bytesOf({ offset, byteLength }: ByteRange): Buffer {
    return this.#bytes.subarray(offset, offset + byteLength);
  }
}

function inflated(packed: Uint8Array, { method, byteLength }: ZipEntry, name: string): Uint8Array {
  if (method !== 8) throw new ZipError(`has '${name}' packed with method ${method}`, true);
  try {
    // One byte more than declared is enough to detect a wrong size.
    return inflateRawSync(packed, { maxOutputLength: byteLength + 1 });
  } catch (error) {
    throw new ZipError(`has a '${name}' that cannot be inflated`, false, { cause: error });
  }
}
