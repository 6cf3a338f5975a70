import { performance } from "node:perf_hooks";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import type { Logger } from "../core/index.ts";
import { trimHeap } from "../system/index.ts";

/** Interval between two checks. */
const checkIntervalMs = 5000;
/** Maximum event loop utilization of an idle process. */
const idleUtilizationMax = 0.05;
/** Minimum growth of resident memory for a release. The growth is relative to the start or to the last release. */
const growthMin = 1.1;

/** Memory and load of the process at one check. */
export interface MemorySample {
  readonly residentBytes: number;
  /** Resident memory after the last release, or at the first check. */
  readonly baseBytes: number;
  /** The fraction of the time since the last check in which the event loop was busy, from 0 to 1. */
  readonly utilization: number;
}

/** Returns whether to release memory: only if the process is idle and its resident memory has grown. */
export function shouldReleaseMemory({ residentBytes, baseBytes, utilization }: MemorySample): boolean {
  return utilization <= idleUtilizationMax && residentBytes > baseBytes * growthMin;
}

/**
 * Checks periodically until disposed. If the process is idle and its resident memory has grown, collects garbage once
 * and returns freed memory to the system. Without this, an idle process keeps the peak memory of its last burst,
 * because Node collects garbage only when it allocates. Requests that arrive during the collection wait, because it
 * blocks the event loop. The timer does not keep the process alive.
 */
export function releaseMemoryWhenIdle(logger: Logger): Disposable {
  let baseBytes = process.memoryUsage.rss();
  let last = performance.eventLoopUtilization();
  let isReleasing = false;
  const look = () => {
    const now = performance.eventLoopUtilization();
    const { utilization } = performance.eventLoopUtilization(now, last);
    last = now;
    const residentBytes = process.memoryUsage.rss();
    baseBytes = Math.min(baseBytes, residentBytes);
    if (isReleasing || !shouldReleaseMemory({ residentBytes, baseBytes, utilization })) return;
    isReleasing = true;
    collectGarbage();
    const trimmed = trimHeap().catch((error: unknown) =>
      logger.warning("freed memory was not returned to the system", { error: String(error) }),
    );
    void trimmed.then(() => {
      baseBytes = process.memoryUsage.rss();
      isReleasing = false;
    });
  };
  const timer = setInterval(look, checkIntervalMs).unref();
  return { [Symbol.dispose]: () => clearInterval(timer) };
}

let collect: ((options: object) => void) | null = null;

/**
 * Options of V8's `gc()`. After a plain collection, V8 keeps the pages of a large heap for seconds or until the next
 * burst. With these options, it returns them to the system at once.
 */
const collection = { type: "major", execution: "sync", flavor: "last-resort" };

/** Collects garbage and returns the heap's free pages to the system. Blocks the event loop. */
export function collectGarbage(): void {
  if (collect === null) {
    // V8 defines `gc` only in contexts that are created while the flag `--expose-gc` is set.
    setFlagsFromString("--expose-gc");
    collect = runInNewContext("gc") as (options: object) => void;
    setFlagsFromString("--no-expose-gc");
  }
  collect(collection);
}
