import type { AlarmState, ActionsSuppressedBy, Suppression, Suppressor } from "./alarm.ts";

export interface SuppressionInput {
  readonly suppressor: Pick<Suppressor, "waitMs" | "extensionMs">;
  /** True while the suppressor is in ALARM. */
  readonly isSuppressing: boolean;
  /** State of the composite alarm after its evaluation; `before` is the state before the evaluation. */
  readonly state: AlarmState;
  readonly before: AlarmState;
  readonly nowMs: number;
}

/**
 * Returns the next suppression of an alarm's actions, and whether the actions of the alarm's state must run now.
 *
 * | current suppression | next, if the suppressor is in ALARM | next, if the suppressor is not in ALARM |
 * | --- | --- | --- |
 * | none | Alarm | WaitPeriod after a change of state, else none |
 * | WaitPeriod | Alarm | WaitPeriod until its end, then none: the actions run |
 * | Alarm | Alarm | ExtensionPeriod |
 * | ExtensionPeriod | Alarm | ExtensionPeriod until its end, then none: the actions run |
 *
 * After a suppression, the actions run only if the state differs from the one whose actions ran last. A change of state
 * during a period does not restart the period.
 */
export function nextSuppression(
  held: Suppression | null,
  { suppressor, isSuppressing, state, before, nowMs }: SuppressionInput,
): { readonly suppression: Suppression | null; readonly acts: boolean } {
  const actedState = held?.actedState ?? before;
  if (isSuppressing) return { suppression: { by: "Alarm", untilMs: null, actedState }, acts: false };
  const next =
    held === null ? waitPeriod(state, { suppressor, before, nowMs }) : extensionPeriod(held, { suppressor, nowMs });
  if (next?.untilMs !== null && next !== null && next.untilMs > nowMs) return { suppression: next, acts: false };
  return { suppression: null, acts: state !== actedState };
}

function waitPeriod(
  state: AlarmState,
  { suppressor, before, nowMs }: Pick<SuppressionInput, "suppressor" | "before" | "nowMs">,
): Suppression | null {
  if (state === before) return null;
  return { by: "WaitPeriod", untilMs: nowMs + suppressor.waitMs, actedState: before };
}

/**
 * Returns the suppression that follows `held` while the suppressor is not in ALARM: a suppression by the alarm becomes
 * an extension period.
 */
function extensionPeriod(
  held: Suppression,
  { suppressor, nowMs }: Pick<SuppressionInput, "suppressor" | "nowMs">,
): Suppression {
  if (held.by !== "Alarm") return held;
  return { by: "ExtensionPeriod", untilMs: nowMs + suppressor.extensionMs, actedState: held.actedState };
}

/** Returns CloudWatch's history text for suppressed actions. */
export const suppressedReason = (by: ActionsSuppressedBy) => `Actions suppressed by ${by}`;
