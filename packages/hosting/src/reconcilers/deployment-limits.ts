import { openDeadline, type Clock } from "@galatea/base";

/** Returns the state of a CloudWatch alarm by name; null if the alarm does not exist. */
export type ReadAlarmState = (name: string) => "OK" | "ALARM" | "INSUFFICIENT_DATA" | null;

/** Interval at which alarms are checked during a deployment, in milliseconds. */
export const alarmPollMs = 1000;

/** Returns the failure reason of a deployment if one of its alarms is in state ALARM; else null. */
export function alarmFailureReason(names: readonly string[], alarmState: ReadAlarmState): string | null {
  const raised = names.find((name) => alarmState(name) === "ALARM");
  return raised === undefined ? null : `The CloudWatch alarm ${raised} is in the state ALARM.`;
}

/** Runs work with a signal that also aborts at the deadline of a deployment. `what` names the deployment in the error text. */
export async function runWithinDeadline<Value>(
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
