/**
 * Number of threads of libuv, which work on files, host names, compression and loads of native models (two at a time).
 * libuv's default is four.
 */
const threadCount = "8";

/**
 * Sets the size of libuv's thread pool. Must be called before the pool's first use, because libuv reads the variable
 * only once. A size that is already set does not change.
 */
export function sizeThreadPool(): void {
  process.env.UV_THREADPOOL_SIZE ??= threadCount;
}
