import type { AlarmDefinition, MetricAlarm } from "../alarms/index.ts";
import type { ScalingPolicy, TrackingPolicy } from "./policy.ts";

const highPeriods = 3;
/** In periods of the metric, which may be shorter than a minute. */
const lowMs = 15 * 60_000;
/** Below this share of the target there are more instances than it takes. */
const lowShare = 0.9;

const ownDescription = "DO NOT EDIT OR DELETE. For TargetTrackingScaling policy ";

/** The alarms that a policy makes for itself: three periods of its metric above its target, and a quarter of an hour below nine tenths of it. */
export function policyAlarms(policy: TrackingPolicy, arnOf: (name: string) => string): readonly MetricAlarm[] {
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

/** Of an alarm that a policy makes, which is of the policy's region and account. */
export function policyAlarmArn(policy: TrackingPolicy, name: string): string {
  const [, region = "", accountId = ""] = policyArnStart.exec(policy.arn) ?? [];
  return `arn:aws:cloudwatch:${region}:${accountId}:alarm:${name}`;
}

/**
 * What a platform that ended between the record of a policy and its alarms has left: alarms that policies lack, and names of alarms whose
 * policy is gone. Alarms of users are nobody's leftovers, whatever they run.
 */
export function unfinishedAlarms(
  policies: readonly ScalingPolicy[],
  alarms: readonly AlarmDefinition[],
): { readonly missing: readonly MetricAlarm[]; readonly orphaned: readonly string[] } {
  const known = new Set(alarms.map(({ name }) => name));
  const wanted = policies.flatMap((policy) =>
    policy.type === "TargetTrackingScaling" ? policyAlarms(policy, (name) => policyAlarmArn(policy, name)) : [],
  );
  const held = new Set(wanted.map(({ name }) => name));
  return {
    missing: wanted.filter(({ name }) => !known.has(name)),
    orphaned: alarms
      .filter(({ name, description }) => description?.startsWith(ownDescription) === true && !held.has(name))
      .map(({ name }) => name),
  };
}
