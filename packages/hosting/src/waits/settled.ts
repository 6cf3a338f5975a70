import { openDeadline, orAborted, type Clock } from "@galatea/base";
import type { HostingStore } from "../store/index.ts";

/** How long a caller may be kept waiting. */
export interface Wait {
  readonly waitMsMax: number;
  readonly signal: AbortSignal;
}

/** A wait that is also over when nobody is to be kept waiting any more. */
export function openWait({ waitMsMax, signal }: Wait, holding: AbortSignal, clock: Clock) {
  return openDeadline({ clock, afterMs: waitMsMax, signal: AbortSignal.any([signal, holding]) });
}

/** Looks at each change of the view: resolves when it is settled, or when the wait is over. */
export async function untilSettled(
  { view }: Pick<HostingStore, "view">,
  isSettled: () => boolean,
  over: AbortSignal,
): Promise<void> {
  for (;;) {
    const changed = view.stateChanged();
    if (isSettled() || over.aborted) return;
    await until(changed, over);
  }
}

/** Resolves with the change, or when the wait is over. */
export async function until(changed: Promise<void>, over: AbortSignal): Promise<void> {
  try {
    await orAborted(changed, over);
  } catch (error) {
    if (!over.aborted) throw error;
  }
}
