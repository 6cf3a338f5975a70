import type { Clock } from "../clock.ts";

/** A wait that is over at a time of the clock, or with the signal it was opened with. To be disposed when nobody waits any more. */
export interface Deadline extends Disposable {
  /** Aborts with the outer signal's reason, or with `late()`. */
  readonly signal: AbortSignal;
  /** Whether it was the time that ended it. */
  readonly isLate: boolean;
}

export interface DeadlineOptions {
  readonly clock: Clock;
  readonly afterMs: number;
  /** Null where nothing but the time ends the wait. */
  readonly signal: AbortSignal | null;
  /** The reason for which the signal aborts when the time has come. */
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

const lateError = () => new Error("the time for it is over");
