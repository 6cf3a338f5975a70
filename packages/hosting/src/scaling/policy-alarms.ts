import type { AlarmDefinition, MetricAlarm } from "../alarms/index.ts";
import type { ScalingPolicy, TargetTrackingPolicy } from "./policy.ts";

const highPeriods = 3;
/**
 * Milliseconds below the target before the capacity is reduced. Divided by the metric's period, it is the number of
 * evaluation periods.
 */
const lowMs = 15 * 60_000;
/** Fraction of the target below which there are too many instances. */
const lowShare = 0.9;

const ownDescription = "DO NOT EDIT OR DELETE. For TargetTrackingScaling policy ";

/**
 * Returns the alarms of a policy. One alarm requires three periods above the target; the other requires 15 minutes
 * below 90 % of the target.
 */
export function policyAlarms(policy: TargetTrackingPolicy, arnOf: (name: string) => string): readonly MetricAlarm[] {
  const facts = (name: string) => ({
    kind: "metric" as const,
    name,
    arn: arnOf(name),
    description: `${ownDescription}${policy.arn}.`,
    actionsEnabled: true,
    actions: { OK: [], ALARM: [policy.arn], INSUFFICIENT_DATA: [] },
    configuredMs: policy.createdMs,
    tags: [],
    watched: policy.watched,
    hasDatapointsToAlarm: false,
  });
  const high: MetricAlarm = {
    ...facts(policy.highAlarm),
    threshold: policy.targetValue,
    comparison: "GreaterThanThreshold",
    evaluationPeriods: highPeriods,
    datapointsToAlarm: highPeriods,
    missing: null,
  };
  if (policy.lowAlarm === null) return [high];
  const lowPeriods = lowMs / policy.watched.periodMs;
  const low: MetricAlarm = {
    ...facts(policy.lowAlarm),
    threshold: policy.targetValue * lowShare,
    comparison: "LessThanThreshold",
    evaluationPeriods: lowPeriods,
    datapointsToAlarm: lowPeriods,
    missing: policy.isZeroWhenMissing ? "breaching" : null,
  };
  return [high, low];
}

const policyArnStart = /^arn:aws:autoscaling:([^:]*):([^:]*):scalingPolicy:/;

/** Returns the ARN of a policy's alarm, in the policy's region and account. */
export function policyAlarmArn(policy: TargetTrackingPolicy, name: string): string {
  const [, region = "", accountId = ""] = policyArnStart.exec(policy.arn) ?? [];
  return `arn:aws:cloudwatch:${region}:${accountId}:alarm:${name}`;
}

/**
 * Returns the work that a crash between the writes of a policy and its alarms left undone: alarms to create, and names
 * of alarms whose policy does not exist. Alarms of users are never included.
 */
export function unfinishedAlarms(
  policies: readonly ScalingPolicy[],
  alarms: readonly AlarmDefinition[],
): { readonly missing: readonly MetricAlarm[]; readonly orphaned: readonly string[] } {
  const known = new Set(alarms.map(({ name }) => name));
  const desired = policies.flatMap((policy) =>
    policy.type === "TargetTrackingScaling" ? policyAlarms(policy, (name) => policyAlarmArn(policy, name)) : [],
  );
  const held = new Set(desired.map(({ name }) => name));
  return {
    missing: desired.filter(({ name }) => !known.has(name)),
    orphaned: alarms
      .filter(({ name, description }) => description?.startsWith(ownDescription) === true && !held.has(name))
      .map(({ name }) => name),
  };
}
