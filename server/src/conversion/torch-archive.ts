import { ConversionError } from "./conversion-error.ts";
import type { WeightFile } from "./stored-tensor.ts";

/** A file in a zip, stored as it is. */
export interface ZipEntry {
  readonly name: string;
  /** Of its first byte, from the zip's beginning. */
  readonly offset: number;
  readonly byteLength: number;
}

const tailBytes = 22 + 0xffff;
const directoryBytesMax = 64 * 2 ** 20;
const signatures = {
  entry: 0x02014b50,
  local: 0x04034b50,
  end: 0x06054b50,
  wideLocator: 0x07064b50,
  wideEnd: 0x06064b50,
};
const wide = { word: 0xffffffff, half: 0xffff, extra: 1 };

/**
 * The files of a zip as PyTorch writes it: nothing compressed. Reads the directory and the entries' headers and nothing else. Throws
 * ConversionError for what is no such file.
 */
export async function readTorchArchive(file: WeightFile): Promise<readonly ZipEntry[]> {
  const wrong = (why: string) => new ConversionError(`'${file.path}' is no file of PyTorch's: ${why}`);
  const fileBytes = (await file.handle.stat()).size;
  const tailStart = Math.max(0, fileBytes - tailBytes);
  const tail = await readRange(file, tailStart, fileBytes - tailStart);
  const end = tail.lastIndexOf(littleEndian(signatures.end));
  if (end === -1 || end + 22 > tail.byteLength) throw wrong("it is no zip, or was cut short");
  const directory = await directoryOf(file, { tail, end, fileBytes, wrong });
  const text = await readRange(file, directory.offset, directory.byteLength);
  const entries: ZipEntry[] = [];
  for (let at = 0; at < text.byteLength;) {
    if (at + 46 > text.byteLength || text.readUInt32LE(at) !== signatures.entry)
      throw wrong("its directory is damaged");
    const [nameBytes, extraBytes, commentBytes] = [28, 30, 32].map((from) => text.readUInt16LE(at + from)) as [
      number,
      number,
      number,
    ];
    const next = at + 46 + nameBytes + extraBytes + commentBytes;
    if (next > text.byteLength) throw wrong("its directory is damaged");
    const name = text.toString("utf8", at + 46, at + 46 + nameBytes);
    if (text.readUInt16LE(at + 10) !== 0) throw wrong(`'${name}' in it is compressed`);
    const extra = text.subarray(at + 46 + nameBytes, at + 46 + nameBytes + extraBytes);
    const sizes = wideSizes(extra, {
      byteLength: text.readUInt32LE(at + 24),
      stored: text.readUInt32LE(at + 20),
      header: text.readUInt32LE(at + 42),
    });
    if (sizes === null) throw wrong("its directory is damaged");
    const head = await readRange(file, sizes.header, Math.min(30, Math.max(0, fileBytes - sizes.header)));
    if (head.byteLength < 30 || head.readUInt32LE(0) !== signatures.local)
      throw wrong(`'${name}' is not where it should be`);
    const offset = sizes.header + 30 + head.readUInt16LE(26) + head.readUInt16LE(28);
    if (offset + sizes.byteLength > fileBytes) throw wrong(`'${name}' ends behind its end`);
    entries.push({ name, offset, byteLength: sizes.byteLength });
    at = next;
  }
  return entries;
}

/** The whole entry, in memory. */
export function readEntry(file: WeightFile, { offset, byteLength }: ZipEntry): Promise<Buffer> {
  return readRange(file, offset, byteLength);
}

interface Ending {
  readonly tail: Buffer;
  readonly end: number;
  readonly fileBytes: number;
  readonly wrong: (why: string) => ConversionError;
}

/** Where the directory lies; a zip of more than 4 GB says it in a record of its own. */
async function directoryOf(file: WeightFile, { tail, end, fileBytes, wrong }: Ending) {
  let byteLength = tail.readUInt32LE(end + 12);
  let offset = tail.readUInt32LE(end + 16);
  if (offset === wide.word || byteLength === wide.word || tail.readUInt16LE(end + 10) === wide.half) {
    if (end < 20 || tail.readUInt32LE(end - 20) !== signatures.wideLocator) throw wrong("its directory is damaged");
    const at = Number(tail.readBigUInt64LE(end - 20 + 8));
    if (!(at + 56 <= fileBytes)) throw wrong("its directory is damaged");
    const record = await readRange(file, at, 56);
    if (record.readUInt32LE(0) !== signatures.wideEnd) throw wrong("its directory is damaged");
    byteLength = Number(record.readBigUInt64LE(40));
    offset = Number(record.readBigUInt64LE(48));
  }
  if (byteLength > directoryBytesMax || offset + byteLength > fileBytes) throw wrong("its directory is damaged");
  return { offset, byteLength };
}

interface Sizes {
  readonly byteLength: number;
  readonly stored: number;
  readonly header: number;
}

/** Numbers that do not fit into 32 bits stand behind the name, in this order. Null where they should and do not. */
function wideSizes(extra: Buffer, sizes: Sizes): Sizes | null {
  const places = (["byteLength", "stored", "header"] as const).filter((each) => sizes[each] === wide.word);
  if (places.length === 0) return sizes;
  for (let at = 0; at + 4 <= extra.byteLength; at += 4 + extra.readUInt16LE(at + 2)) {
    if (extra.readUInt16LE(at) !== wide.extra) continue;
    if (at + 4 + 8 * places.length > extra.byteLength) return null;
    const found = places.map((each, index) => [each, Number(extra.readBigUInt64LE(at + 4 + 8 * index))] as const);
    return { ...sizes, ...Object.fromEntries(found) };
  }
  return null;
}

function littleEndian(word: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32LE(word);
  return bytes;
}

async function readRange({ path, handle }: WeightFile, offset: number, byteLength: number): Promise<Buffer> {
  const bytes = Buffer.alloc(byteLength);
  let done = 0;
  while (done < byteLength) {
    const { bytesRead } = await handle.read(bytes, done, byteLength - done, offset + done);
    if (bytesRead === 0) throw new ConversionError(`'${path}' was cut short while it was read`);
    done += bytesRead;
  }
  return bytes;
}
