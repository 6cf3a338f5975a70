import { openDeadline, type Clock } from "@galatea/base";

/** Returns the state of a CloudWatch alarm by name; null when there is no such alarm. */
export type ReadAlarmState = (name: string) => "OK" | "ALARM" | "INSUFFICIENT_DATA" | null;

/** Poll interval of alarms while a deployment bakes. */
export const alarmPollMs = 1000;

/** Returns the failure reason of a deployment when one of its alarms is in the state ALARM; null otherwise. */
export function raisedAlarm(names: readonly string[], alarmState: ReadAlarmState): string | null {
  const raised = names.find((name) => alarmState(name) === "ALARM");
  return raised === undefined ? null : `The CloudWatch alarm ${raised} is in the state ALARM.`;
}

/** Runs work with a signal that also aborts at the deadline of a deployment. `what`: the word for the deployment in the error. */
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
  using limit = openDeadline({ clock, afterMs: Math.max(0, deadlineMs - clock.epochMs()), signal, createError: late });
  return await work(limit.signal);
}
