import { createHash } from "node:crypto";
import { open, type FileHandle } from "node:fs/promises";
import { crc32 } from "node:zlib";
import { checksummedLine, parseChecksummedLine } from "@galatea/base";
import type { ObjectHead } from "./object-store.ts";

/** The stored description of an object. */
export interface ObjectEntry {
  readonly head: ObjectHead;
  /** The version of the file with this entry, from 1. The highest version of a key is the object. */
  readonly version: number;
  /** Name of the file with the bytes; null: they follow the entry. */
  readonly data: string | null;
  /** Offset of the bytes in that file. */
  readonly offset: number;
  /** CRC-32 of the bytes. */
  readonly crc32: number;
  /** The multipart upload that made it, so that completing it twice returns the same result. */
  readonly uploadId: string | null;
}

/** The content of an entry's file; its version is in the name. */
export type StoredEntry = Omit<ObjectEntry, "version" | "offset">;

/** Returns a key's name in the file system: independent of slashes, length, case and Unicode forms. */
export const keyHash = (key: string): string => createHash("sha256").update(key).digest("hex");

const versionDigits = 11;

export const entryFileName = (hash: string, version: number): string =>
  `${hash}.${version.toString(36).padStart(versionDigits, "0")}.json`;

export interface EntryName {
  readonly hash: string;
  readonly version: number;
}

/** Returns null for a name that is not an entry's. */
export function parseEntryName(name: string): EntryName | null {
  const match = /^([0-9a-f]{64})\.([0-9a-z]{11})\.json$/.exec(name);
  if (match === null) return null;
  return { hash: match[1] ?? "", version: Number.parseInt(match[2] ?? "", 36) };
}

/** Returns the name of the file with an object's bytes. */
export const dataFileName = (entry: ObjectEntry): string =>
  entry.data ?? entryFileName(keyHash(entry.head.key), entry.version);

const lengthDigits = 8;
/** The first line: a checksummed line with the length of the next. */
const firstLineBytes = checksummedLine("0".repeat(lengthDigits)).length + 1;
/** Bytes of the first read: enough for the entry of nearly every object. */
const readAheadBytes = 2048;
const lineBytesMax = 2 ** 20;
const lineFeed = 0x0a;

/**
 * Returns the beginning of an entry's file: two checksummed lines, the first with the length of the second. The
 * object's bytes may follow.
 */
export function encodeEntry(stored: StoredEntry): Buffer {
  const { head, data, crc32: sum, uploadId } = stored;
  const line = Buffer.from(`${checksummedLine(JSON.stringify({ head, data, crc32: sum, uploadId }))}\n`);
  const first = Buffer.from(`${checksummedLine(String(line.byteLength).padStart(lengthDigits, "0"))}\n`);
  return Buffer.concat([first, line]);
}

export interface EntryReadResult {
  readonly entry: ObjectEntry;
  /** One of its bits had flipped and was corrected: the file has to be rewritten. */
  readonly isRepaired: boolean;
}

/**
 * Reads an entry. Throws if it cannot be read, belongs to another key, or its bytes are cut short. `checksBytes`:
 * throws also if the bytes do not match their CRC.
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
  // The checksums do not cover the line feeds.
  const hasLineFeeds = ahead[firstLineBytes - 1] === lineFeed && line.at(-1) === lineFeed;
  return { stored, isRepaired: first.isRepaired || second.isRepaired || !hasLineFeeds, byteLength: end, size };
}

/** Throws if the file ends earlier. */
export async function readExactly(file: FileHandle, offset: number, byteLength: number): Promise<Buffer> {
  const bytes = Buffer.allocUnsafe(byteLength);
  for (let at = 0; at < byteLength;) {
    const { bytesRead } = await file.read(bytes, at, byteLength - at, offset + at);
    if (bytesRead === 0) throw new Error("the file is cut short");
    at += bytesRead;
  }
  return bytes;
}
