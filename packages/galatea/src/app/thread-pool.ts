/** Threads for files, names, compression and the loading of native models (two at a time), which libuv would do with four. */
const threadCount = "8";

/** Sizes libuv's pool before its first use (it reads the variable once). A size given from outside stays. */
export function sizeThreadPool(): void {
  process.env.UV_THREADPOOL_SIZE ??= threadCount;
}
