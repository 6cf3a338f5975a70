import { randomUUID } from "node:crypto";
import { systemClock, TaskGroup, type Logger } from "@galatea/base";
import { createDirectoryLogStreams, pruneLogsPeriodically, type LogStreams } from "@galatea/hosting";
import { openChunkedLogStreams } from "@galatea/hosting/logs/chunked";
import type { DataDirectories } from "../../data-directory/index.ts";
import type { PlatformStorage } from "./platform-storage.ts";

const logLimits = { streamBytesMax: 64 * 2 ** 20, streamsMax: 10_000, groupsMax: 10_000 };
/** Maximum bytes of lines that wait for the object store, or that get more lines of the same segment. */
const localBytesMax = 2 ** 30;

export interface LogDependencies {
  readonly directories: DataDirectories;
  readonly storage: Pick<PlatformStorage, "documents" | "chunks">;
  readonly logger: Logger;
}

/**
 * Opens the log streams that receive the containers' output: files of the data directory, or chunks in the object store
 * if the records are in PostgreSQL.
 */
export async function openLogs(
  opening: AsyncDisposableStack,
  { directories, storage: { documents, chunks }, logger }: LogDependencies,
): Promise<LogStreams> {
  const options = { directory: directories.logs, clock: systemClock, logger, ...logLimits };
  const logs = opening.use(
    chunks === null
      ? createDirectoryLogStreams(options)
      : await openChunkedLogStreams({ ...options, ...chunks, documents, localBytesMax, newId: randomUUID }),
  );
  const upkeep = opening.use(new TaskGroup((error) => logger.error("upkeep failed", { error: String(error) })));
  upkeep.run((closing) => pruneLogsPeriodically(logs, { clock: systemClock, logger }, closing));
  return logs;
}
