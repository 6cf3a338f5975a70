import { openDeadline, rejectOnAbort, type Clock } from "@galatea/base";
import type { HostingStore } from "../store/index.ts";

/** The maximum duration of a caller's wait, in milliseconds, and the signal that cancels it. */
export interface WaitLimits {
  readonly waitMsMax: number;
  readonly signal: AbortSignal;
}

/** Opens the deadline of a caller's wait. The deadline's signal also aborts when `stopping` aborts. */
export function openWaitDeadline({ waitMsMax, signal }: WaitLimits, stopping: AbortSignal, clock: Clock) {
  return openDeadline({ clock, afterMs: waitMsMax, signal: AbortSignal.any([signal, stopping]) });
}

/** Resolves when `isReached` returns true, or when the signal aborts. The condition is checked after each change of the view. */
export async function waitForState(
  { view }: Pick<HostingStore, "view">,
  isReached: () => boolean,
  signal: AbortSignal,
): Promise<void> {
  for (;;) {
    const changed = view.stateChanged();
    if (isReached() || signal.aborted) return;
    await waitForChange(changed, signal);
  }
}

/** Resolves when `changed` resolves or the signal aborts. */
export async function waitForChange(changed: Promise<void>, signal: AbortSignal): Promise<void> {
  try {
    await rejectOnAbort(changed, signal);
  } catch (error) {
    if (!signal.aborted) throw error;
  }
}
