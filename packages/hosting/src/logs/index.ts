/**
 * Log streams: output of containers and log events of clients, by group and stream. Errors are AwsError with CloudWatch
 * Logs' codes.
 */
export { createDirectoryLogStreams, type DirectoryLogStreamsOptions } from "./directory-log-storage.ts";
export { pruneLogsPeriodically } from "./log-upkeep.ts";
export type { LogEvent, LogFollower, LogGroup, LogPage, LogReadOptions, LogStream, LogStreams } from "./log-streams.ts";
