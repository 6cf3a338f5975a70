import { openDeadline, rejectOnAbort, type Clock } from "@galatea/base";
import type { HostingStore } from "../store/index.ts";

/** The limits of a caller's wait. */
export interface Wait {
  readonly waitMsMax: number;
  readonly signal: AbortSignal;
}

/** Opens the deadline of a wait, which also ends when `holding` aborts. */
export function openWait({ waitMsMax, signal }: Wait, holding: AbortSignal, clock: Clock) {
  return openDeadline({ clock, afterMs: waitMsMax, signal: AbortSignal.any([signal, holding]) });
}

/** Resolves when `isSettled` returns true after a change of the view, or when the wait ends. */
export async function untilStable(
  { view }: Pick<HostingStore, "view">,
  isSettled: () => boolean,
  over: AbortSignal,
): Promise<void> {
  for (;;) {
    const changed = view.stateChanged();
    if (isSettled() || over.aborted) return;
    await untilChanged(changed, over);
  }
}

/** Resolves with the change, or when the wait ends. */
export async function untilChanged(changed: Promise<void>, over: AbortSignal): Promise<void> {
  try {
    await rejectOnAbort(changed, over);
  } catch (error) {
    if (!over.aborted) throw error;
  }
}
