import type { Clock } from "../clock.ts";

/**
 * A time-out whose signal aborts when the time has passed, or when the outer signal aborts. The owner disposes the deadline when nothing
 * waits any more.
 */
export interface Deadline extends Disposable {
  /** Aborts with the outer signal's reason, or with `createError()` when the time has passed. */
  readonly signal: AbortSignal;
  /** True if the time has passed; false if the outer signal aborted first. */
  readonly hasExpired: boolean;
}

export interface DeadlineOptions {
  readonly clock: Clock;
  readonly afterMs: number;
  /** The outer signal; null when only the time ends the wait. */
  readonly signal: AbortSignal | null;
  /** Creates the reason with which the signal aborts when the time has passed. */
  readonly createError?: () => Error;
}

export function openDeadline({ clock, afterMs, signal, createError: late = defaultError }: DeadlineOptions): Deadline {
  const controller = new AbortController();
  let isLate = false;
  const leave = () => controller.abort(signal?.reason);
  const timer = clock.timer(afterMs, () => {
    isLate = !controller.signal.aborted;
    controller.abort(late());
  });
  if (signal?.aborted === true) leave();
  else signal?.addEventListener("abort", leave, { once: true });
  return {
    signal: controller.signal,
    get hasExpired() {
      return isLate;
    },
    [Symbol.dispose]() {
      timer[Symbol.dispose]();
      signal?.removeEventListener("abort", leave);
    },
  };
}

const defaultError = () => new Error("the deadline has passed");
