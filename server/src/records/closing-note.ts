import { createHash } from "node:crypto";
import {
  closeSync,
  existsSync,
  fsyncSync,
  openSync,
  readFileSync,
  readSync,
  renameSync,
  rmSync,
  statSync,
  writeSync,
} from "node:fs";

/** What an orderly close left: the digests of both copies, and of the journal how long its beginning is, in bytes. */
export interface ClosingNote {
  readonly database: string;
  readonly journal: string;
  readonly beginningBytes: number;
}

const pieceBytes = 2 ** 20;
const notePath = (path: string) => `${path}.closed`;

/**
 * Written last when a database is closed in order: nothing of it lies in a log any more. A start that finds both files byte for byte as
 * they were needs not read them row by row. Without a note, after kill -9 or where it cannot be written, it does.
 */
export function writeClosingNote(
  path: string,
  journal: { readonly path: string; readonly beginningBytes: number },
): void {
  if (existsSync(`${path}-wal`) && statSync(`${path}-wal`).size > 0) return;
  const { beginningBytes } = journal;
  const note: ClosingNote = { database: digestOf(path), journal: digestOf(journal.path), beginningBytes };
  const partial = `${notePath(path)}.new`;
  const file = openSync(partial, "w");
  try {
    writeSync(file, JSON.stringify(note));
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
  renameSync(partial, notePath(path));
}

/** Removes the note, for it is true of nothing that comes. Null where there is none, or a file is not what it was. */
export function takeClosingNote(path: string, journalPath: string): ClosingNote | null {
  const note = readNote(notePath(path));
  if (note === null) return null;
  rmSync(notePath(path));
  if (existsSync(`${path}-wal`) && statSync(`${path}-wal`).size > 0) return null;
  const isAsNoted =
    existsSync(path) &&
    existsSync(journalPath) &&
    digestOf(path) === note.database &&
    digestOf(journalPath) === note.journal;
  return isAsNoted ? note : null;
}

function readNote(path: string): ClosingNote | null {
  let text: string;
  try {
    text = readFileSync(path, "utf8");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return null;
    throw error;
  }
  try {
    const { database, journal, beginningBytes } = JSON.parse(text) as Partial<ClosingNote>;
    const isNote = typeof database === "string" && typeof journal === "string" && Number.isSafeInteger(beginningBytes);
    if (isNote) return { database, journal, beginningBytes: beginningBytes ?? 0 };
  } catch {
    // It is damaged, and says nothing.
  }
  rmSync(path);
  return null;
}

function digestOf(path: string): string {
  const hash = createHash("sha256");
  const piece = Buffer.allocUnsafe(pieceBytes);
  const file = openSync(path, "r");
  try {
    for (let length = 0; (length = readSync(file, piece)) > 0;) hash.update(piece.subarray(0, length));
  } finally {
    closeSync(file);
  }
  return hash.digest("hex");
}
