import { createHash } from "node:crypto";
import { open, type FileHandle } from "node:fs/promises";
import { crc32 } from "node:zlib";
import { checksummedLine, parseChecksummedLine } from "@galatea/base";
import type { ObjectHead } from "./object-store.ts";

/** What is known of an object. */
export interface ObjectEntry {
  readonly head: ObjectHead;
  /** The version of the file that holds this entry, from 1. The highest version of a key is the object. */
  readonly version: number;
  /** The file beside it that holds the bytes; null: they follow the entry. */
  readonly data: string | null;
  /** Where in that file they begin. */
  readonly offset: number;
  /** CRC-32 of the bytes. */
  readonly crc32: number;
  /** The multipart upload that made it, so that completing twice answers the same. */
  readonly uploadId: string | null;
}

/** What an entry's file says; its version is in the name. */
export type StoredEntry = Omit<ObjectEntry, "version" | "offset">;

/** A key's name in the file system: slashes, length, case and Unicode forms mean nothing to it. */
export const hashOf = (key: string): string => createHash("sha256").update(key).digest("hex");

const versionDigits = 11;

export const entryName = (hash: string, version: number): string =>
  `${hash}.${version.toString(36).padStart(versionDigits, "0")}.json`;

export interface EntryName {
  readonly hash: string;
  readonly version: number;
}

/** Null where this is not the name of an entry. */
export function parseEntryName(name: string): EntryName | null {
  const match = /^([0-9a-f]{64})\.([0-9a-z]{11})\.json$/.exec(name);
  if (match === null) return null;
  return { hash: match[1] ?? "", version: Number.parseInt(match[2] ?? "", 36) };
}

/** The name of the file that holds an object's bytes. */
export const dataName = (entry: ObjectEntry): string => entry.data ?? entryName(hashOf(entry.head.key), entry.version);

const lengthDigits = 8;
/** A sealed line with the length of the next. */
const firstLineBytes = checksummedLine("0".repeat(lengthDigits)).length + 1;
/** Read at once: enough for the entry of nearly every object. */
const readAheadBytes = 2048;
const lineBytesMax = 2 ** 20;
const lineFeed = 0x0a;

/** An entry as it begins its file: two sealed lines, the first with the length of the second. The object's bytes may follow. */
export function encodeEntry(stored: StoredEntry): Buffer {
  const { head, data, crc32: sum, uploadId } = stored;
  const line = Buffer.from(`${checksummedLine(JSON.stringify({ head, data, crc32: sum, uploadId }))}\n`);
  const first = Buffer.from(`${checksummedLine(String(line.byteLength).padStart(lengthDigits, "0"))}\n`);
  return Buffer.concat([first, line]);
}

export interface ReadEntry {
  readonly entry: ObjectEntry;
  /** One of its bits was another one: it is to be written anew. */
  readonly isRepaired: boolean;
}

/** Throws where it cannot be read, is another key's, or its bytes are cut short. `checksBytes`: also where they are not those of its CRC. */
export async function readEntryFile(
  path: string,
  { hash, version }: EntryName,
  { checksBytes }: { readonly checksBytes: boolean },
): Promise<ReadEntry> {
  await using file = await open(path, "r");
  const { stored, isRepaired, byteLength, size } = await readLines(file);
  const offset = stored.data === null ? byteLength : 0;
  const entry = { ...stored, version, offset };
  if (hashOf(entry.head.key) !== hash) throw new Error("it is another key's");
  if (stored.data !== null) return { entry, isRepaired };
  if (size !== offset + entry.head.byteLength) throw new Error("its bytes are not as many as it says");
  if (checksBytes && crc32(await readExactly(file, offset, entry.head.byteLength)) !== entry.crc32) {
    throw new Error("its bytes are others");
  }
  return { entry, isRepaired };
}

interface EntryLines {
  readonly stored: StoredEntry;
  readonly isRepaired: boolean;
  readonly byteLength: number;
  /** Of the whole file. */
  readonly size: number;
}

async function readLines(file: FileHandle): Promise<EntryLines> {
  const ahead = Buffer.allocUnsafe(readAheadBytes);
  const { bytesRead } = await file.read(ahead, 0, readAheadBytes, 0);
  if (bytesRead === 0) throw new Error("it is empty, as a power failure leaves a write that was not yet answered");
  const first = parseChecksummedLine(ahead.subarray(0, Math.min(bytesRead, firstLineBytes - 1)));
  const lineBytes = Number(first?.text);
  if (first === null || !Number.isInteger(lineBytes) || lineBytes > lineBytesMax) {
    throw new Error("the checksum of its beginning is another one");
  }
  const end = firstLineBytes + lineBytes;
  const line =
    end <= bytesRead ? ahead.subarray(firstLineBytes, end) : await readExactly(file, firstLineBytes, lineBytes);
  const second = parseChecksummedLine(line.subarray(0, -1));
  if (second === null) throw new Error("its checksum is another one");
  const stored = JSON.parse(second.text) as StoredEntry;
  const size = bytesRead < readAheadBytes ? bytesRead : (await file.stat()).size;
  // The checksums do not cover the line feeds.
  const hasLineFeeds = ahead[firstLineBytes - 1] === lineFeed && line.at(-1) === lineFeed;
  return { stored, isRepaired: first.isRepaired || second.isRepaired || !hasLineFeeds, byteLength: end, size };
}

/** Throws where the file ends before. */
export async function readExactly(file: FileHandle, offset: number, byteLength: number): Promise<Buffer> {
  const bytes = Buffer.allocUnsafe(byteLength);
  for (let at = 0; at < byteLength;) {
    const { bytesRead } = await file.read(bytes, at, byteLength - at, offset + at);
    if (bytesRead === 0) throw new Error("the file is cut short");
    at += bytesRead;
  }
  return bytes;
}
