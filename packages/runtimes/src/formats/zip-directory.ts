/** A range of a zip file. A reader is a generator that yields the ranges it needs, and receives their bytes. */
export interface ByteRange {
  readonly offset: number;
  readonly byteLength: number;
}

/** A file in a zip, as declared in the directory of the zip. */
export interface ZipEntry {
  readonly name: string;
  /** 0: stored; 8: deflated. */
  readonly method: number;
  readonly isEncrypted: boolean;
  readonly crc: number;
  /** Compressed size in the zip. */
  readonly packedBytes: number;
  readonly byteLength: number;
  /** Offset of the local header of the file. */
  readonly headerOffset: number;
}

/** The error for an unreadable zip. Its message is a predicate; the caller adds the name of the file as the subject. */
export class ZipError extends Error {
  /** True if the zip is valid, but uses an unsupported feature. */
  readonly isUnsupported: boolean;

  constructor(message: string, isUnsupported = false, options?: ErrorOptions) {
    super(message, options);
    this.name = "ZipError";
    this.isUnsupported = isUnsupported;
  }
}

const endBytes = 22;
const locatorBytes = 20;
const wideEndBytes = 56;
const tailBytes = locatorBytes + endBytes + 0xffff;
const entryBytes = 46;
const headerBytes = 30;
const directoryBytesMax = 64 * 2 ** 20;
const signatures = {
  entry: 0x02014b50,
  local: 0x04034b50,
  end: 0x06054b50,
  wideLocator: 0x07064b50,
  wideEnd: 0x06064b50,
};
const wide = { word: 0xffffffff, half: 0xffff, extra: 1 };

/** Returns the files of a zip of `fileBytes` bytes, in the order of its directory. Throws ZipError for an invalid zip. */
export function* zipDirectory(
  fileBytes: number,
  { entriesMax }: { readonly entriesMax: number },
): Generator<ByteRange, readonly ZipEntry[], Buffer> {
  const { offset, byteLength } = yield* directoryRange(fileBytes);
  const directory = yield { offset, byteLength };
  const entries: ZipEntry[] = [];
  const names = new Set<string>();
  for (let at = 0; at < directory.byteLength;) {
    if (entries.length === entriesMax) throw new ZipError(`has more than ${entriesMax} files`, true);
    const [entry, next] = entryAt(directory, at);
    if (names.has(entry.name)) throw new ZipError(`has two files '${entry.name.slice(0, 200)}'`);
    names.add(entry.name);
    entries.push(entry);
    at = next;
  }
  return entries;
}

/** Returns the range of a file's compressed bytes. Throws ZipError for an invalid local header. */
export function* zipData(
  { name, headerOffset, packedBytes }: ZipEntry,
  fileBytes: number,
): Generator<ByteRange, ByteRange, Buffer> {
  const misplaced = () => new ZipError(`has no '${name.slice(0, 200)}' at the position in its directory`);
  if (headerOffset + headerBytes > fileBytes) throw misplaced();
  const header = yield { offset: headerOffset, byteLength: headerBytes };
  if (header.readUInt32LE(0) !== signatures.local) throw misplaced();
  const offset = headerOffset + headerBytes + header.readUInt16LE(26) + header.readUInt16LE(28);
  if (offset + packedBytes > fileBytes) throw new ZipError(`ends within '${name.slice(0, 200)}'`);
  return { offset, byteLength: packedBytes };
}

/**
 * Returns the range of the directory, which the record at the end of the zip declares. Only a comment may follow this record. A zip over
 * 4 GB has an additional 64-bit record.
 */
function* directoryRange(fileBytes: number): Generator<ByteRange, ByteRange, Buffer> {
  const tailOffset = Math.max(0, fileBytes - tailBytes);
  const tail = yield { offset: tailOffset, byteLength: fileBytes - tailOffset };
  const end = tail.lastIndexOf(littleEndian(signatures.end));
  if (end === -1 || end + endBytes > tail.byteLength) throw new ZipError("is not a zip archive, or is truncated");
  let byteLength = tail.readUInt32LE(end + 12);
  let offset = tail.readUInt32LE(end + 16);
  if (offset === wide.word || byteLength === wide.word || tail.readUInt16LE(end + 10) === wide.half) {
    const locator = end - locatorBytes;
    if (locator < 0 || tail.readUInt32LE(locator) !== signatures.wideLocator) throw damaged();
    const at = Number(tail.readBigUInt64LE(locator + 8));
    if (!(at + wideEndBytes <= fileBytes)) throw damaged();
    const record = yield { offset: at, byteLength: wideEndBytes };
    if (record.readUInt32LE(0) !== signatures.wideEnd) throw damaged();
    byteLength = Number(record.readBigUInt64LE(40));
    offset = Number(record.readBigUInt64LE(48));
  }
  if (byteLength > directoryBytesMax || !(offset + byteLength <= fileBytes)) throw damaged();
  return { offset, byteLength };
}

function entryAt(directory: Buffer, at: number): readonly [ZipEntry, number] {
  if (at + entryBytes > directory.byteLength || directory.readUInt32LE(at) !== signatures.entry) throw damaged();
  const nameEnd = at + entryBytes + directory.readUInt16LE(at + 28);
  const extraEnd = nameEnd + directory.readUInt16LE(at + 30);
  const next = extraEnd + directory.readUInt16LE(at + 32);
  if (next > directory.byteLength) throw damaged();
  const sizes = wideSizes(directory.subarray(nameEnd, extraEnd), {
    byteLength: directory.readUInt32LE(at + 24),
    packedBytes: directory.readUInt32LE(at + 20),
    headerOffset: directory.readUInt32LE(at + 42),
  });
  const entry = {
    name: directory.toString("utf8", at + entryBytes, nameEnd),
    method: directory.readUInt16LE(at + 10),
    isEncrypted: (directory.readUInt16LE(at + 8) & 1) === 1,
    crc: directory.readUInt32LE(at + 16),
    ...sizes,
  };
  return [entry, next];
}

type Sizes = Pick<ZipEntry, "byteLength" | "packedBytes" | "headerOffset">;

/** Replaces the sizes that do not fit into 32 bits: the extra field has their 64-bit values, in the order of the list below. */
function wideSizes(extra: Buffer, sizes: Sizes): Sizes {
  const locations = (["byteLength", "packedBytes", "headerOffset"] as const).filter(
    (each) => sizes[each] === wide.word,
  );
  if (locations.length === 0) return sizes;
  for (let at = 0; at + 4 <= extra.byteLength; at += 4 + extra.readUInt16LE(at + 2)) {
    if (extra.readUInt16LE(at) !== wide.extra) continue;
    if (at + 4 + 8 * locations.length > extra.byteLength) throw damaged();
    const found = locations.map((each, index) => [each, Number(extra.readBigUInt64LE(at + 4 + 8 * index))] as const);
    return { ...sizes, ...Object.fromEntries(found) };
  }
  // Without a 64-bit extra field, 0xffffffff is the size itself.
  return sizes;
}

function damaged(): ZipError {
  return new ZipError("has a broken directory");
}

function littleEndian(word: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32LE(word);
  return bytes;
}
