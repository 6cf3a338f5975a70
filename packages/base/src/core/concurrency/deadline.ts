import type { Clock } from "../clock.ts";

/** A wait that ends at a time of the clock, or with the signal it was opened with. The owner disposes it when nothing waits any more. */
export interface Deadline extends Disposable {
  /** Aborts with the outer signal's reason, or with `late()`. */
  readonly signal: AbortSignal;
  /** True if the time ended it. */
  readonly isLate: boolean;
}

export interface DeadlineOptions {
  readonly clock: Clock;
  readonly afterMs: number;
  /** Null when only the time ends the wait. */
  readonly signal: AbortSignal | null;
  /** Creates the reason with which the signal aborts at that time. */
  readonly late?: () => Error;
}

export function openDeadline({ clock, afterMs, signal, late = lateError }: DeadlineOptions): Deadline {
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
    get isLate() {
      return isLate;
    },
    [Symbol.dispose]() {
      timer[Symbol.dispose]();
      signal?.removeEventListener("abort", leave);
    },
  };
}

const lateError = () => new Error("its deadline has passed");
