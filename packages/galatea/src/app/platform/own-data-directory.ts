import { makeDirectory, type Logger } from "@galatea/base";
import { lockDirectory } from "@galatea/base/processes";
import {
  restrictToOwner,
  migrateDataFormat,
  platformDirectories,
  type DataDirectories,
} from "../../data-directory/index.ts";
import { serverVersion } from "../version.ts";

/**
 * Creates the data directory if needed and locks it for this process. Throws if another platform or agent uses it, or
 * if a newer release has migrated it. `check` runs before anything in the directory is changed.
 */
export async function openDataDirectory(
  opening: AsyncDisposableStack,
  directories: DataDirectories,
  { log, check }: { readonly log: Logger; readonly check?: () => void },
): Promise<void> {
  for (const directory of platformDirectories(directories)) await makeDirectory(directory);
  const lock = lockDirectory(directories.records);
  if (lock === null) {
    throw new Error(`another platform uses ${directories.root}; stop it, or choose another directory with --data`);
  }
  opening.use(lock);
  check?.();
  await migrateDataFormat(directories, { release: serverVersion });
  await restrictToOwner(directories, log);
}
