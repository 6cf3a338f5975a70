import { existsSync } from "node:fs";
import { rm } from "node:fs/promises";
import { createLogger, makeDirectory } from "@galatea/base";
import { lockDirectory } from "@galatea/base/processes";
import {
  copyRecords,
  openSqliteSource,
  openSqliteTarget,
  type CopySource,
  type CopyTarget,
} from "@galatea/hosting/records";
import { databasePaths, dataDirectories, platformUmask } from "../data-directory/index.ts";
import type { RecordsCopyOptions } from "../options/index.ts";
import { tableText } from "./platform-commands/table.ts";

/**
 * Runs `galatea records copy`, which copies records and metrics to an empty directory or database. The copy is
 * consistent. Prints the counts and checksums, which it has compared with those of the copy. Resolves with 1 if it
 * fails; then the target stays empty.
 */
export async function copyRecordsCommand({ from, to }: RecordsCopyOptions): Promise<number> {
  process.umask(platformUmask);
  try {
    await using source = await openSource(from);
    await using target = await openTarget(to);
    const { documents, metrics } = await copyRecords(source, target);
    process.stdout.write(tableText([...documents, ...metrics], ["kind", "count", "bytes", "sha256"]));
    const sum = documents.reduce((count, each) => count + each.count, 0);
    const also = metrics.length > 0 ? ", and the metrics," : "";
    process.stdout.write(
      `${sum} documents of version ${source.version}${also} are copied, and their checksums are equal\n`,
    );
    if (source.isInUse) process.stdout.write("A platform uses the source: its later changes are not in the copy\n");
    return 0;
  } catch (error) {
    process.stderr.write(`galatea records copy: ${(error as Error).message}\n`);
    return 1;
  }
}

const isUrl = (location: string) => /^postgres(?:ql)?:\/\//.test(location);

async function openSource(location: string): Promise<CopySource> {
  if (isUrl(location)) {
    const { openPostgresSource, parseDatabaseUrl } = await import("@galatea/hosting/records/postgres");
    return await openPostgresSource(parseDatabaseUrl(location));
  }
  const directories = dataDirectories(location, process.env);
  const paths = databasePaths(directories);
  if (!existsSync(paths.records)) throw new Error(`there are no records in '${directories.root}'`);
  using lock = lockDirectory(directories.records);
  return openSqliteSource(paths, { isInUse: lock === null });
}

async function openTarget(location: string): Promise<CopyTarget> {
  if (isUrl(location)) {
    const { openPostgresTarget, parseDatabaseUrl } = await import("@galatea/hosting/records/postgres");
    return await openPostgresTarget(
      parseDatabaseUrl(location),
      createLogger((_level, line) => process.stderr.write(`${line}\n`)),
    );
  }
  const directories = dataDirectories(location, process.env);
  await makeDirectory(directories.records);
  await using opening = new AsyncDisposableStack();
  const lock = lockDirectory(directories.records);
  if (lock === null) throw new Error(`a platform uses '${directories.root}'; stop it first`);
  opening.use(lock);
  const paths = databasePaths(directories);
  const target = opening.use(await openSqliteTarget(paths));
  const opened = opening.move();
  return {
    metrics: target.metrics,
    write: target.write.bind(target),
    pages: target.pages.bind(target),
    async commit(version) {
      await target.commit(version);
      await rm(paths.recordsMoved, { force: true });
    },
    [Symbol.asyncDispose]: () => opened.disposeAsync(),
  };
}
