import { createHash } from "node:crypto";
import { open, type FileHandle } from "node:fs/promises";
import { crc32 } from "node:zlib";
import { checksummedLine, parseChecksummedLine } from "@galatea/base";
import type { ObjectHead } from "./object-store.ts";

/** The stored description of an object. */
export interface ObjectEntry {
  readonly head: ObjectHead;
  /** Version of the entry file, starting at 1. The entry with the highest version of a key is the object. */
  readonly version: number;
  /** Name of the file with the bytes; null if the bytes follow the entry. */
  readonly data: string | null;
  /** Offset of the bytes in the file that contains them. */
  readonly offset: number;
  /** CRC-32 of the bytes. */
  readonly crc32: number;
  /**
   * The multipart upload that created the object, so that completing it twice returns the same result; null for a put.
   */
  readonly uploadId: string | null;
}

/** The content of an entry file. The version is in the file's name. */
export type StoredEntry = Omit<ObjectEntry, "version" | "offset">;

/**
 * Returns the file name for a key. It is a hash, so that slashes, length, case and Unicode normalization of keys do not
 * matter.
 */
export const keyHash = (key: string): string => createHash("sha256").update(key).digest("hex");

const versionDigits = 11;

export const entryFileName = (hash: string, version: number): string =>
  `${hash}.${version.toString(36).padStart(versionDigits, "0")}.json`;

export interface EntryName {
  readonly hash: string;
  readonly version: number;
}

/** Parses the name of an entry file; returns null for any other name. */
export function parseEntryName(name: string): EntryName | null {
  const match = /^([0-9a-f]{64})\.([0-9a-z]{11})\.json$/.exec(name);
  if (match === null) return null;
  return { hash: match[1] ?? "", version: Number.parseInt(match[2] ?? "", 36) };
}

/** Returns the name of the file with an object's bytes. */
export const dataFileName = (entry: ObjectEntry): string =>
  entry.data ?? entryFileName(keyHash(entry.head.key), entry.version);

const lengthDigits = 8;
/** Length of the first line, a checksummed line with the length of the second line. */
const firstLineBytes = checksummedLine("0".repeat(lengthDigits)).length + 1;
/** Bytes of the first read, which contains the complete entry of nearly every object. */
const readAheadBytes = 2048;
const lineBytesMax = 2 ** 20;
const lineFeed = 0x0a;

/**
 * Returns the start of an entry file: two checksummed lines, the first with the length of the second. The object's
 * bytes may follow.
 */
export function encodeEntry(stored: StoredEntry): Buffer {
  const { head, data, crc32: sum, uploadId } = stored;
  const line = Buffer.from(`${checksummedLine(JSON.stringify({ head, data, crc32: sum, uploadId }))}\n`);
  const first = Buffer.from(`${checksummedLine(String(line.byteLength).padStart(lengthDigits, "0"))}\n`);
  return Buffer.concat([first, line]);
}

export interface EntryReadResult {
  readonly entry: ObjectEntry;
  /** True if one flipped bit was corrected. The caller must rewrite the file. */
  readonly isRepaired: boolean;
}

/**
 * Reads an entry. Rejects if it cannot be read, belongs to another key, or the bytes are truncated. If `checksBytes` is
 * true, also rejects if the bytes do not match their CRC.
 */
export async function readEntryFile(
  path: string,
  { hash, version }: EntryName,
  { checksBytes }: { readonly checksBytes: boolean },
): Promise<EntryReadResult> {
  await using file = await open(path, "r");
  const { stored, isRepaired, byteLength, size } = await readLines(file);
  const offset = stored.data === null ? byteLength : 0;
  const entry = { ...stored, version, offset };
  if (keyHash(entry.head.key) !== hash) throw new Error("it belongs to another key");
  if (stored.data !== null) return { entry, isRepaired };
  if (size !== offset + entry.head.byteLength) throw new Error("its length does not match");
  if (checksBytes && crc32(await readExactly(file, offset, entry.head.byteLength)) !== entry.crc32) {
    throw new Error("its bytes do not match their checksum");
  }
  return { entry, isRepaired };
}

interface EntryLines {
  readonly stored: StoredEntry;
  readonly isRepaired: boolean;
  readonly byteLength: number;
  /** Size of the whole file. */
  readonly size: number;
}

async function readLines(file: FileHandle): Promise<EntryLines> {
  const ahead = Buffer.allocUnsafe(readAheadBytes);
  const { bytesRead } = await file.read(ahead, 0, readAheadBytes, 0);
  if (bytesRead === 0) throw new Error("it is empty, as after a power failure during a write");
  const first = parseChecksummedLine(ahead.subarray(0, Math.min(bytesRead, firstLineBytes - 1)));
  const lineBytes = Number(first?.text);
  if (first === null || !Number.isInteger(lineBytes) || lineBytes > lineBytesMax) {
    throw new Error("the checksum of its first line does not match");
  }
  const end = firstLineBytes + lineBytes;
  const line =
    end <= bytesRead ? ahead.subarray(firstLineBytes, end) : await readExactly(file, firstLineBytes, lineBytes);
  const second = parseChecksummedLine(line.subarray(0, -1));
  if (second === null) throw new Error("its checksum does not match");
  const stored = JSON.parse(second.text) as StoredEntry;
  const size = bytesRead < readAheadBytes ? bytesRead : (await file.stat()).size;
  // The checksums do not cover the line feeds, so a damaged line feed is repaired, too.
  const hasLineFeeds = ahead[firstLineBytes - 1] === lineFeed && line.at(-1) === lineFeed;
  return { stored, isRepaired: first.isRepaired || second.isRepaired || !hasLineFeeds, byteLength: end, size };
}

/** Reads exactly `byteLength` bytes. Rejects if the file ends earlier. */
export async function readExactly(file: FileHandle, offset: number, byteLength: number): Promise<Buffer> {
  const bytes = Buffer.allocUnsafe(byteLength);
  for (let at = 0; at < byteLength;) {
    const { bytesRead } = await file.read(bytes, at, byteLength - at, offset + at);
    if (bytesRead === 0) throw new Error("the file is cut short");
    at += bytesRead;
  }
  return bytes;
}
