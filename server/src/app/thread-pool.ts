import { readFileSync } from "node:fs";
import { availableParallelism, cpus } from "node:os";
import { checkThreadPoolSize, threadPoolSizeFor } from "../native/index.ts";

/** Native model runs at once, over all models. */
export const runsMax = Math.max(2, availableParallelism());

/** Cores rather than the threads that they run at once: two threads of one core have its arithmetic only once. */
export function coreCount(): number {
  const cores = new Set<string>();
  for (let cpu = 0; cpu < cpus().length; cpu++) {
    try {
      cores.add(readFileSync(`/sys/devices/system/cpu/cpu${cpu}/topology/thread_siblings_list`, "utf8"));
    } catch {
      // A machine that does not tell: every processor counts as a core.
      return availableParallelism();
    }
  }
  return Math.max(1, Math.min(cores.size, availableParallelism()));
}

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
