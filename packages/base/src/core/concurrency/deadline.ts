import type { Clock } from "../clock.ts";

/**
 * A time-out with a signal, which aborts when the time has elapsed or the outer signal aborts. The owner disposes the
 * deadline once nothing waits for it any more.
 */
export interface Deadline extends Disposable {
  /** Aborts with the outer signal's reason, or with `createError()` when the time has elapsed. */
  readonly signal: AbortSignal;
  /** True if the time has elapsed; false if the outer signal aborted first. */
  readonly hasExpired: boolean;
}

export interface DeadlineOptions {
  readonly clock: Clock;
  readonly afterMs: number;
  /** The outer signal; null if only the time-out aborts. */
  readonly signal: AbortSignal | null;
  /** Creates the abort reason for a time-out. */
  readonly createError?: () => Error;
}

export function openDeadline({ clock, afterMs, signal, createError: late = defaultError }: DeadlineOptions): Deadline {
  const controller = new AbortController();
  let isLate = false;
  const disconnect = () => controller.abort(signal?.reason);
  const timer = clock.timer(afterMs, () => {
    isLate = !controller.signal.aborted;
    controller.abort(late());
  });
  if (signal?.aborted === true) disconnect();
  else signal?.addEventListener("abort", disconnect, { once: true });
  return {
    signal: controller.signal,
    get hasExpired() {
      return isLate;
    },
    [Symbol.dispose]() {
      timer[Symbol.dispose]();
      signal?.removeEventListener("abort", disconnect);
    },
  };
}

const defaultError = () => new Error("the deadline has passed");
