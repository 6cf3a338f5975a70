import type { AlarmState, SuppressedBy, Suppression, Suppressor } from "./alarm.ts";

export interface SuppressionFacts {
  readonly suppressor: Pick<Suppressor, "waitMs" | "extensionMs">;
  /** True while the suppressor is in ALARM. */
  readonly isSuppressing: boolean;
  /** State of the composite alarm, now and before its evaluation. */
  readonly state: AlarmState;
  readonly before: AlarmState;
  readonly nowMs: number;
}

/**
 * Returns the suppression of an alarm's actions, and whether the actions of its state are to run now.
 *
 * | suppressed by | the suppressor is in ALARM | it is not |
 * | --- | --- | --- |
 * | nothing | by Alarm | a new state waits for the suppressor: by WaitPeriod |
 * | WaitPeriod | by Alarm | when the period is over the alarm acts |
 * | Alarm | by Alarm | by ExtensionPeriod |
 * | ExtensionPeriod | by Alarm | when the period is over the alarm acts |
 *
 * An alarm that acts after a period runs the actions of its state, unless they ran before the suppression. A further change of state does
 * not restart a period.
 */
export function nextSuppression(
  held: Suppression | null,
  { suppressor, isSuppressing, state, before, nowMs }: SuppressionFacts,
): { readonly suppression: Suppression | null; readonly acts: boolean } {
  const actedState = held?.actedState ?? before;
  if (isSuppressing) return { suppression: { by: "Alarm", untilMs: null, actedState }, acts: false };
  const next = held === null ? waiting(state, { suppressor, before, nowMs }) : left(held, { suppressor, nowMs });
  if (next?.untilMs !== null && next !== null && next.untilMs > nowMs) return { suppression: next, acts: false };
  return { suppression: null, acts: state !== actedState };
}

function waiting(
  state: AlarmState,
  { suppressor, before, nowMs }: Pick<SuppressionFacts, "suppressor" | "before" | "nowMs">,
): Suppression | null {
  if (state === before) return null;
  return { by: "WaitPeriod", untilMs: nowMs + suppressor.waitMs, actedState: before };
}

/** Returns the suppression while the suppressor is not in ALARM. */
function left(held: Suppression, { suppressor, nowMs }: Pick<SuppressionFacts, "suppressor" | "nowMs">): Suppression {
  if (held.by !== "Alarm") return held;
  return { by: "ExtensionPeriod", untilMs: nowMs + suppressor.extensionMs, actedState: held.actedState };
}

/** Returns CloudWatch's text for a suppressed action. */
export const suppressedReason = (by: SuppressedBy) => `Actions suppressed by ${by}`;
