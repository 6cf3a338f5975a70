import type { Clock } from "./clock.ts";

/** Returns a clock that shows the test's own time and whose timers never fire. */
export const clockWithoutTimers = (nowMs: () => number): Clock => ({
  epochMs: nowMs,
  monotonicNs: () => nowMs() * 1e6,
  timer: () => ({ [Symbol.dispose]() {} }),
});
