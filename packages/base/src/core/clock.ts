/**
 * A source of time and timers, passed to all code that reads the time. Tests pass a simulated clock, so that they never
 * sleep.
 */
export interface Clock {
  /** Milliseconds since the Unix epoch. */
  epochMs(): number;
  /** Nanoseconds of a clock that never goes backwards; only differences are meaningful. Accurate to well under 1 us. */
  monotonicNs(): number;
  /**
   * Calls `fire` once after `delayMs`. Disposing the result before that cancels the timer. The timer does not keep the
   * process alive.
   */
  timer(delayMs: number, fire: () => void): Disposable;
}

/** Maximum delay of `setTimeout`, which fires after 1 ms if the delay is longer. A queue delay may be longer. */
const timeoutMsMax = 2 ** 31 - 1;

export const systemClock: Clock = {
  epochMs: () => Date.now(),
  monotonicNs: () => performance.now() * 1e6,
  timer(delayMs, fire) {
    let handle: NodeJS.Timeout;
    const arm = (leftMs: number): void => {
      const nextMs = Math.min(leftMs, timeoutMsMax);
      handle = setTimeout(() => (leftMs > nextMs ? arm(leftMs - nextMs) : fire()), nextMs);
      handle.unref();
    };
    arm(delayMs);
    return { [Symbol.dispose]: () => clearTimeout(handle) };
  },
};

/**
 * Resolves after `delayMs`. Rejects with the signal's reason if the signal aborts first. Keeps the process alive while
 * it waits.
 */
export function delay(clock: Clock, delayMs: number, signal: AbortSignal | null): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(signal.reason as Error);
    const keepAlive = setInterval(() => {}, 2 ** 30);
    const settle = (finish: () => void) => {
      clearInterval(keepAlive);
      timer[Symbol.dispose]();
      signal?.removeEventListener("abort", onAbort);
      finish();
    };
    const onAbort = () => settle(() => reject(signal?.reason as Error));
    const timer = clock.timer(delayMs, () => settle(resolve));
    signal?.addEventListener("abort", onAbort, { once: true });
  });
}
