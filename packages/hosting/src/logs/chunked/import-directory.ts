import type { Clock, Logger } from "@galatea/base";
import { DirectoryLogStorage } from "../directory-log-storage.ts";
import type { LogStorage } from "../log-storage.ts";

/**
 * Moves the log files of a platform with records in SQLite into another storage. An interrupted import continues at the
 * next start.
 */
export async function importDirectory(
  options: {
    readonly directory: string;
    readonly streamBytesMax: number;
    readonly clock: Clock;
    readonly logger: Logger;
  },
  target: Pick<LogStorage, "facts" | "makeGroup" | "hasStream" | "makeStream">,
  adopt: (group: string, stream: string, path: string) => Promise<void>,
): Promise<void> {
  const source = new DirectoryLogStorage(options);
  let streamCount = 0;
  for (const group of await source.groupNames()) {
    const facts = await source.facts(group);
    if (facts === null) continue;
    if ((await target.facts(group)) === null) await target.makeGroup(group, facts);
    for (const stream of await source.streamNames(group)) {
      if (!(await target.hasStream(group, stream))) await target.makeStream(group, stream);
      for (const { path } of await source.segments(group, stream)) await adopt(group, stream, path);
      await source.removeStream(group, stream);
      streamCount += 1;
    }
    await source.removeGroup(group);
  }
  if (streamCount > 0) options.logger.info("log files are moved to the object store", { streamCount });
}
