import { closeSync, fstatSync, openSync, readSync } from "node:fs";
import { crc32 } from "node:zlib";

/** The CRC-32 of each page of a database's file, the first page's first. */
export interface PageSums {
  readonly pageBytes: number;
  readonly sums: Uint32Array;
}

const pieceBytes = 2 ** 20;
const pageBytesOffset = 16;
const logHeaderBytes = 32;
const frameHeaderBytes = 24;
const logMagics: ReadonlySet<number> = new Set([0x377f0682, 0x377f0683]);

/** Runs `task` with the file open for reading; null where there is no such file. */
function withFile<Result>(path: string, task: (file: number) => Result): Result | null {
  let file: number;
  try {
    file = openSync(path, "r");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return null;
    throw error;
  }
  try {
    return task(file);
  } finally {
    closeSync(file);
  }
}

/** Fills the buffer from this place on; gives how much there was. */
function readAt(file: number, into: Buffer, at: number): number {
  let filled = 0;
  for (let got = -1; got !== 0 && filled < into.length; filled += got) {
    got = readSync(file, into, filled, into.length - filled, at + filled);
  }
  return filled;
}

/** What the header says; 0 where it says nothing that SQLite writes. */
function pageBytesOf(file: number): number {
  const header = Buffer.alloc(pageBytesOffset + 2);
  if (readAt(file, header, 0) < header.length) return 0;
  const told = header.readUInt16BE(pageBytesOffset);
  const pageBytes = told === 1 ? 65_536 : told;
  return pageBytes >= 512 && (pageBytes & (pageBytes - 1)) === 0 ? pageBytes : 0;
}

/** Of the whole file; null where there is none, or it is no database. What lies behind the last whole page is no page. */
export function sumPages(path: string): PageSums | null {
  return withFile(path, (file) => {
    const pageBytes = pageBytesOf(file);
    if (pageBytes === 0) return null;
    const sums = new Uint32Array(Math.floor(fstatSync(file).size / pageBytes));
    const piece = Buffer.allocUnsafe(Math.max(pieceBytes, pageBytes));
    const perPiece = piece.length / pageBytes;
    for (let first = 0; first < sums.length; first += perPiece) {
      const pageCount = Math.min(
        perPiece,
        sums.length - first,
        Math.floor(readAt(file, piece, first * pageBytes) / pageBytes),
      );
      for (let page = 0; page < pageCount; page += 1) {
        sums[first + page] = crc32(piece.subarray(page * pageBytes, (page + 1) * pageBytes));
      }
    }
    return { pageBytes, sums };
  });
}

/** The same where only these pages, counted from 1, and those behind the former end may be others. */
export function sumPagesAnew(path: string, before: PageSums, pages: ReadonlySet<number>): PageSums | null {
  return withFile(path, (file) => {
    const { pageBytes } = before;
    if (pageBytesOf(file) !== pageBytes) return null;
    const sums = new Uint32Array(Math.floor(fstatSync(file).size / pageBytes));
    sums.set(before.sums.subarray(0, sums.length));
    const page = Buffer.allocUnsafe(pageBytes);
    const sum = (number: number) => {
      if (number > sums.length || readAt(file, page, (number - 1) * pageBytes) < pageBytes) return;
      sums[number - 1] = crc32(page);
    };
    for (const number of pages) sum(number);
    for (let number = before.sums.length + 1; number <= sums.length; number += 1) sum(number);
    return { pageBytes, sums };
  });
}

/** The pages, counted from 1, that are others than they were, or are there no more, or were not there. */
export function differingPages(before: PageSums, now: PageSums): readonly number[] {
  const count = Math.max(before.sums.length, now.sums.length);
  const differing: number[] = [];
  for (let page = 0; page < count; page += 1) if (before.sums[page] !== now.sums[page]) differing.push(page + 1);
  return differing;
}

/**
 * The pages, counted from 1, that the committed part of a write-ahead log holds: SQLite reads them there, whatever the database's file has,
 * unless it finds a frame damaged and forgets all commits from there on.
 */
export function pagesInLog(path: string): ReadonlySet<number> {
  return withFile(path, readLog) ?? new Set();
}

function readLog(file: number): ReadonlySet<number> {
  const committed = new Set<number>();
  const header = Buffer.alloc(logHeaderBytes);
  if (readAt(file, header, 0) < logHeaderBytes || !logMagics.has(header.readUInt32BE(0))) return committed;
  const pageBytes = header.readUInt32BE(8);
  if (pageBytes < 512 || pageBytes > 65_536) return committed;
  const frame = Buffer.alloc(frameHeaderBytes);
  const uncommitted: number[] = [];
  for (let at = logHeaderBytes; ; at += frameHeaderBytes + pageBytes) {
    if (readAt(file, frame, at) < frameHeaderBytes) return committed;
    // Behind frames of this log there may be those of one before, which had other salts.
    if (frame.compare(header, 16, 24, 8, 16) !== 0) return committed;
    uncommitted.push(frame.readUInt32BE(0));
    if (frame.readUInt32BE(4) === 0) continue;
    for (const page of uncommitted.splice(0)) committed.add(page);
  }
}
