import type { MetricAlarm } from "../alarms/index.ts";
import type { TrackingPolicy } from "./policy.ts";

const highPeriods = 3;
const lowPeriods = 15;
/** Below this share of the target there are more instances than it takes. */
const lowShare = 0.9;

/** The alarms that a policy makes for itself: three minutes above its target, and a quarter of an hour below nine tenths of it. */
export function policyAlarms(policy: TrackingPolicy, arnOf: (name: string) => string): readonly MetricAlarm[] {
  const facts = (name: string) => ({
    kind: "metric" as const,
    name,
    arn: arnOf(name),
    description: `DO NOT EDIT OR DELETE. For TargetTrackingScaling policy ${policy.arn}.`,
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
