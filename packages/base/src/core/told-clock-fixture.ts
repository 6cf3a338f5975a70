import type { Clock } from "./clock.ts";

/** The time that a test tells. Its timers never fire: what waits for time the test does itself. */
export const toldClock = (nowMs: () => number): Clock => ({
  epochMs: nowMs,
  monotonicNs: () => nowMs() * 1e6,
  timer: () => ({ [Symbol.dispose]() {} }),
});
