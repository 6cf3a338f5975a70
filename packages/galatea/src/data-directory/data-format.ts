import { existsSync } from "node:fs";
import { open, readFile, rename } from "node:fs/promises";
import { join } from "node:path";
import type { DataDirectories } from "./directories.ts";

/**
 * Migrates the files of a data directory from one format to the next. It must be repeatable, because an earlier start
 * may have been interrupted during it.
 */
export type FormatStep = (directories: DataDirectories) => Promise<void>;

/**
 * The step at index i migrates format i + 1 to format i + 2. Released steps must never be edited. The databases have
 * migrations of their own. Each release that adds one must also add a step here, so that older releases reject the
 * directory before they open it.
 */
const formatSteps: readonly FormatStep[] = [];

export interface FormatOptions {
  /** The version of this release. */
  readonly release: string;
  /** The migration steps; absent: those of this product. */
  readonly steps?: readonly FormatStep[];
}

interface RecordedFormat {
  readonly format: number;
  /** The release that migrated the directory to this format. */
  readonly release: string;
}

export function formatPath({ root }: DataDirectories): string {
  return join(root, "format.json");
}

/**
 * Migrates a data directory to the format of this release, and records that format. The caller must have locked the
 * directory. A directory without a recorded format has format 1. If a newer release has migrated the directory to an
 * unknown format, rejects and changes nothing.
 */
export async function migrateDataFormat(
  directories: DataDirectories,
  { release, steps = formatSteps }: FormatOptions,
): Promise<void> {
  const known = steps.length + 1;
  const recorded = await recordedFormat(directories, release);
  const isNew = recorded === null && !existsSync(join(directories.records, "galatea.db"));
  const found = recorded?.format ?? (isNew ? known : 1);
  if (found > known) {
    const newer = recorded?.release ?? "";
    throw new Error(
      `the data directory '${directories.root}' has format ${found} since Galatea ${newer} opened it, and this release (${release}) reads ` +
        `formats up to ${known}: start Galatea ${newer} or newer, or choose another directory with --data`,
    );
  }
  for (const step of steps.slice(found - 1)) await step(directories);
  if (recorded === null || found < known) await writeFormat(directories, { format: known, release });
}

async function recordedFormat(directories: DataDirectories, release: string): Promise<RecordedFormat | null> {
  const path = formatPath(directories);
  try {
    const { format, release: by } = JSON.parse(await readFile(path, "utf8")) as Partial<RecordedFormat>;
    if (Number.isInteger(format) && format! >= 1 && typeof by === "string") return { format: format!, release: by };
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return null;
    if (!(error instanceof SyntaxError)) throw error;
  }
  throw new Error(
    `'${path}' does not say which format the data directory has: remove it if no release newer than ${release} has opened the directory, ` +
      "or choose another directory with --data",
  );
}

/** Writes the file atomically: after a power failure, either the old file or no file exists. */
async function writeFormat(directories: DataDirectories, recorded: RecordedFormat): Promise<void> {
  const path = formatPath(directories);
  const partial = `${path}.${process.pid}`;
  {
    await using file = await open(partial, "w");
    await file.writeFile(`${JSON.stringify(recorded)}\n`);
    await file.sync();
  }
  await rename(partial, path);
}
