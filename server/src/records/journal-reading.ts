import { closeSync, fstatSync, openSync, readSync } from "node:fs";
import { crc32 } from "node:zlib";
import { soundText } from "../base/index.ts";

/** What a journal has before its commits. */
export interface JournalBeginning {
  readonly byteLength: number;
  /** CRC-32 of these bytes. */
  readonly sum: number;
  /** Of the state that it writes down. */
  readonly commitCount: number;
}

/** What the commits behind a journal's beginning come to. */
export interface JournalCommits {
  readonly commitCount: number;
  /** Behind them lies nothing, such as a part of a further line. */
  readonly isEnded: boolean;
}

const pieceBytes = 2 ** 20;

/** The CRC-32 of so many bytes from a file's beginning on; null where there are fewer. */
export function sumBeginning(path: string, byteLength: number): number | null {
  const piece = Buffer.allocUnsafe(pieceBytes);
  const file = openSync(path, "r");
  try {
    let [sum, at] = [0, 0];
    while (at < byteLength) {
      const got = readSync(file, piece, 0, Math.min(pieceBytes, byteLength - at), at);
      if (got === 0) return null;
      sum = crc32(piece.subarray(0, got), sum);
      at += got;
    }
    return sum;
  } finally {
    closeSync(file);
  }
}

/** Of a journal whose beginning is sound: its lines are not decoded. Null where one is damaged, or not the next commit's. */
export function readCommits(path: string, { byteLength, commitCount: first }: JournalBeginning): JournalCommits | null {
  const bytes = readFrom(path, byteLength);
  let [commitCount, start, end] = [first, 0, 0];
  for (; (end = bytes.indexOf(10, start)) >= 0; start = end + 1) {
    const text = soundText(bytes.subarray(start, end));
    commitCount += 1;
    if (text === null || !text.startsWith(`{"commit":${commitCount},`)) return null;
  }
  return { commitCount, isEnded: start === bytes.length };
}

function readFrom(path: string, from: number): Buffer {
  const file = openSync(path, "r");
  try {
    const bytes = Buffer.allocUnsafe(Math.max(0, fstatSync(file).size - from));
    let filled = 0;
    for (let got = -1; got !== 0 && filled < bytes.length; filled += got) {
      got = readSync(file, bytes, filled, bytes.length - filled, from + filled);
    }
    return bytes.subarray(0, filled);
  } finally {
    closeSync(file);
  }
}
