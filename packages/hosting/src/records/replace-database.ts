import { copyFileSync, existsSync, renameSync, rmSync, statSync } from "node:fs";
import { basename, dirname } from "node:path";
import { CommitMark } from "./commit-mark.ts";
import { examineDatabase, type ExamineOptions } from "./examine.ts";
import { flushFile } from "./snapshot-files.ts";
import { appliedMigrations, commitCount } from "./tables.ts";

/** A copy of another file, next to the database, that can replace the database. */
export type Candidate =
  | { readonly at: "sound"; readonly commitCount: number }
  | { readonly at: "damaged"; readonly reason: string };

const candidatePath = (path: string) => `${path}.new`;
const withLog = (path: string) => [path, `${path}-wal`, `${path}-shm`];

/** Copies a file to a candidate next to the database and examines the candidate. The file is not changed. */
export function copyCandidate(from: string, options: ExamineOptions): Candidate {
  const path = candidatePath(options.path);
  for (const file of withLog(path)) rmSync(file, { force: true });
  copyFileSync(from, path);
  const examined = examineDatabase({ ...options, path });
  if (examined.at === "absent") throw new Error(`bug: '${path}' is missing`);
  const { database } = examined;
  try {
    if (examined.at !== "sound") return { at: "damaged", reason: examined.reason };
    if (appliedMigrations(examined.database).length === 0) return { at: "damaged", reason: "it holds no records" };
    return { at: "sound", commitCount: commitCount(examined.database) };
  } finally {
    database?.close();
  }
}

/** Replaces a closed database by the candidate. If the candidate is null, removes the database. */
export function replaceDatabase(path: string, candidate: Candidate | null): void {
  // The write-ahead log belongs to the previous file. Without the removal, SQLite would apply it to the new file.
  for (const file of withLog(path).toReversed()) rmSync(file, { force: true });
  if (candidate !== null) {
    flushFile(candidatePath(path));
    renameSync(candidatePath(path), path);
  }
  flushFile(dirname(path));
}

export function removeCandidate(path: string): void {
  for (const file of withLog(candidatePath(path))) rmSync(file, { force: true });
}

/**
 * Copies the non-empty files of a database to `<file>.<word>-<number>`, with the first unused number. Returns the names
 * of the copies.
 */
export function copyAside(path: string, word: "damaged" | "replaced"): readonly string[] {
  const files = [path, `${path}-wal`];
  const isKept = (file: string) => (statSync(file, { throwIfNoEntry: false })?.size ?? 0) > 0;
  return files.filter(isKept).map((file) => {
    let number = 1;
    while (existsSync(`${file}.${word}-${number}`)) number += 1;
    const aside = `${file}.${word}-${number}`;
    copyFileSync(file, aside);
    return basename(aside);
  });
}

export type Restored =
  | { readonly at: "restored"; readonly aside: readonly string[] }
  | { readonly at: "refused"; readonly reason: string };

/**
 * Replaces the database by a copy of `from`. No process may have the database open. Returns a refusal if the file is
 * damaged or has other migrations.
 */
export function restoreDatabase(from: string, options: ExamineOptions): Restored {
  const { path } = options;
  const candidate = copyCandidate(from, options);
  if (candidate.at === "damaged") {
    removeCandidate(path);
    return { at: "refused", reason: candidate.reason };
  }
  const aside = copyAside(path, "replaced");
  replaceDatabase(path, candidate);
  using mark = new CommitMark(`${path}.commits`);
  mark.write(candidate.commitCount);
  return { at: "restored", aside };
}
