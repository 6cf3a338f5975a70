/**
 * The data directory: its paths, its format, the checks at a start, its file modes, and the search for running
 * platforms.
 */
export { migrateDataFormat } from "./data-format.ts";
export { checkDataLayout } from "./data-layout.ts";
export {
  credentialsPath,
  databasePaths,
  type DatabasePaths,
  dataDirectories,
  machineFrameworks,
  platformDirectories,
  type DataDirectories,
} from "./directories.ts";
export { restrictToOwner, platformUmask } from "./private-data.ts";
export { announcePlatform, findRunningPlatform, PlatformChoice, type RunningPlatform } from "./running-platforms.ts";
