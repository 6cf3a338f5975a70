/**
 * Number of threads for files, names, compression and loading native models (two at a time); libuv's default is four.
 */
const threadCount = "8";

/** Sizes libuv's pool before its first use (it reads the variable once). An exported size stays. */
export function sizeThreadPool(): void {
  process.env.UV_THREADPOOL_SIZE ??= threadCount;
}
