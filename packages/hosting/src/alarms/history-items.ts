import type { AlarmHistoryItem, AlarmRecord, AlarmStatus } from "./alarm.ts";
import { suppressedReason } from "./suppression.ts";

/** Returns the history item for a transition to a new state. */
export function stateTransition({ status }: AlarmRecord, before: AlarmStatus): AlarmHistoryItem {
  const stateData = ({ state, reason, reasonData }: AlarmStatus) => ({
    stateValue: state,
    stateReason: reason,
    ...(reasonData === null ? {} : { stateReasonData: JSON.parse(reasonData) as unknown }),
  });
  return {
    atMs: status.updatedMs,
    kind: "StateUpdate",
    summary: `Alarm updated from ${before.state} to ${status.state}`,
    data: JSON.stringify({ version: "1.0", oldState: stateData(before), newState: stateData(status) }),
  };
}

/**
 * Returns a list with the history item for suppressed actions. The list is empty if the alarm's actions are not
 * suppressed.
 */
export function suppressedActions({ suppression, updatedMs }: AlarmStatus): readonly AlarmHistoryItem[] {
  if (suppression === undefined) return [];
  const summary = suppressedReason(suppression.by);
  const data = JSON.stringify({ actionState: "Suppressed", stateUpdateTimestamp: updatedMs });
  return [{ atMs: updatedMs, kind: "Action", summary, data }];
}
