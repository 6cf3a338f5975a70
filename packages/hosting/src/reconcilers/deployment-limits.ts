import { openDeadline, type Clock } from "@galatea/base";

/** Of a CloudWatch alarm by its name; null for one that there is not. */
export type ReadAlarmState = (name: string) => "OK" | "ALARM" | "INSUFFICIENT_DATA" | null;

/** Between looks at the alarms of what bakes. */
export const alarmLookMs = 1000;

/** The failure reason of a deployment with these alarms; null where none of them is raised. */
export function raisedAlarm(names: readonly string[], alarmState: ReadAlarmState): string | null {
  const raised = names.find((name) => alarmState(name) === "ALARM");
  return raised === undefined ? null : `The CloudWatch alarm ${raised} is in the state ALARM.`;
}

/** Runs work with a signal that aborts at the deadline of a deployment, too; `what` names the deployment in the reason. */
export async function withinDeadline<Value>(
  {
    deadlineMs,
    clock,
    signal,
    what,
  }: {
    readonly deadlineMs: number | null;
    readonly clock: Clock;
    readonly signal: AbortSignal;
    readonly what: "deployment" | "update";
  },
  work: (signal: AbortSignal) => Promise<Value>,
): Promise<Value> {
  if (deadlineMs === null) return await work(signal);
  const late = () => new Error(`The ${what} took longer than its MaximumExecutionTimeoutInSeconds.`);
  using limit = openDeadline({ clock, afterMs: Math.max(0, deadlineMs - clock.epochMs()), signal, late });
  return await work(limit.signal);
}
