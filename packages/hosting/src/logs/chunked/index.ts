/**
 * Log streams of a platform with records in PostgreSQL: lines are in local files for a minute, and then compressed
 * chunks in the object store, with one record for each chunk.
 */
export { openChunkedLogStreams, type ChunkedLogStreamsOptions } from "./chunked-log-storage.ts";
export { chooseLogBucket, readLogBucket } from "./log-records.ts";
