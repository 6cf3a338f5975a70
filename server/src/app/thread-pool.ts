import { availableParallelism } from "node:os";
import { checkThreadPoolSize, threadPoolSizeFor } from "../native/index.ts";

/** Native model runs at once, over all models. */
export const runsMax = Math.max(2, availableParallelism());

/**
 * Sizes libuv's pool before its first use (it reads the variable once): with the pool full of model runs, a file read would
 * otherwise wait for them. A size given from outside stays; `checkThreadPool` says whether it is enough.
 */
export function sizeThreadPool(): void {
  process.env.UV_THREADPOOL_SIZE ??= String(threadPoolSizeFor(runsMax));
}

/** Throws when a size given from outside is too small for the runs; asked when the first model needs the pool. */
export function checkThreadPool(): void {
  checkThreadPoolSize(runsMax, process.env.UV_THREADPOOL_SIZE);
}
