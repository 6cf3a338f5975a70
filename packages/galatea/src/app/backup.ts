import { existsSync } from "node:fs";
import { resolve } from "node:path";
import { asDiskError, makeDirectory } from "@galatea/base";
import { lockDirectory } from "@galatea/base/processes";
import { copyDatabase, restoreDocuments } from "@galatea/hosting/records";
import { databasePaths, dataDirectories, platformUmask } from "../data-directory/index.ts";
import type { BackupOptions } from "../options/index.ts";

/**
 * Runs `galatea backup FILE`, which writes a consistent copy of the records, even while a platform runs. Returns 1 if
 * it fails.
 */
export function backup({ file, data }: BackupOptions): number {
  process.umask(platformUmask);
  const directories = dataDirectories(data, process.env);
  const [{ records }, to] = [databasePaths(directories), resolve(file)];
  if (!existsSync(records))
    return refuse("backup", `there are no records in '${directories.root}'; set the directory with --data`);
  if (existsSync(to)) return refuse("backup", `'${to}' exists; choose another file`);
  try {
    copyDatabase(records, to);
  } catch (error) {
    return refuse("backup", `cannot write '${to}': ${messageOf(error, to)}`);
  }
  process.stdout.write(`The records of '${directories.root}' are in '${to}'\n`);
  return 0;
}

/**
 * Runs `galatea restore FILE`, which replaces the records with those of a backup or a snapshot. Resolves with 1 if it
 * fails or if a platform uses the directory.
 */
export async function restore({ file, data }: BackupOptions): Promise<number> {
  process.umask(platformUmask);
  const directories = dataDirectories(data, process.env);
  const [{ records: path }, from] = [databasePaths(directories), resolve(file)];
  if (!existsSync(from)) return refuse("restore", `'${from}' does not exist`);
  try {
    await makeDirectory(directories.records);
    using lock = lockDirectory(directories.records);
    if (lock === null) return refuse("restore", `a platform uses '${directories.root}'; stop it first`);
    const restored = restoreDocuments(from, path);
    if (restored.at === "refused") return refuse("restore", `'${from}' is not a backup of records: ${restored.reason}`);
    const aside = restored.aside.length === 0 ? "" : `; the former ones are kept as ${restored.aside.join(", ")}`;
    process.stdout.write(`The records of '${directories.root}' were replaced by those of '${from}'${aside}\n`);
    return 0;
  } catch (error) {
    return refuse("restore", `cannot write '${path}': ${messageOf(error, path)}`);
  }
}

const messageOf = (error: unknown, path: string): string => (asDiskError(error, `'${path}'`) as Error).message;

function refuse(command: string, message: string): number {
  process.stderr.write(`galatea ${command}: ${message}\n`);
  return 1;
}
