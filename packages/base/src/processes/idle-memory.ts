import { performance } from "node:perf_hooks";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import type { Logger } from "../core/index.ts";
import { trimHeap } from "../system/index.ts";

/** Interval between two checks. */
const lookMs = 5000;
/** Maximum event loop utilization of an idle process. */
const idleUtilizationMax = 0.05;
/** Growth of resident memory since the start, or since the last release, from which a release is worthwhile. */
const growthMin = 1.1;

/** The input of a decision. */
export interface IdleMemoryLook {
  readonly residentBytes: number;
  /** Resident memory after the last release, or at the first look. */
  readonly baseBytes: number;
  /** The share of the time since the last look in which the event loop was busy, from 0 to 1. */
  readonly utilization: number;
}

/** Returns whether memory is released now. */
export function shouldRelease({ residentBytes, baseBytes, utilization }: IdleMemoryLook): boolean {
  return utilization <= idleUtilizationMax && residentBytes > baseBytes * growthMin;
}

/**
 * Releases memory after a burst until disposed: when the process is idle and its resident memory has grown, it collects garbage once and
 * returns freed memory to the system. Without this an idle process keeps the peak of its last burst: Node collects only when it allocates.
 * The collection blocks the event loop: a request that arrives meanwhile waits for its end. The timer keeps no process alive.
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
    if (isReleasing || !shouldRelease({ residentBytes, baseBytes, utilization })) return;
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
  const timer = setInterval(look, lookMs).unref();
  return { [Symbol.dispose]: () => clearInterval(timer) };
}

let collect: ((options: object) => void) | null = null;

/** V8 keeps the pages of a heap that was large after a plain collection, for seconds or until the next burst. After this one it returns them. */
const collection = { type: "major", execution: "sync", flavor: "last-resort" };

/** Collects garbage and returns the heap's free pages to the system, while the event loop waits. */
export function collectGarbage(): void {
  if (collect === null) {
    // V8 defines the function in contexts that are made while the flag is set.
    setFlagsFromString("--expose-gc");
    collect = runInNewContext("gc") as (options: object) => void;
    setFlagsFromString("--no-expose-gc");
  }
  collect(collection);
}
