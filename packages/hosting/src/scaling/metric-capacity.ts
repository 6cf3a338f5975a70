import type { AlarmEvent, ReadMetricValues } from "../alarms/index.ts";
import type { Clock } from "@galatea/base";
import { combinedCapacity, stepScalingCapacity, targetTrackingCapacity, type CapacityState } from "./capacity.ts";
import type { ScalingPolicy, StepPolicy, TargetTrackingPolicy } from "./policy.ts";

export interface ResourceCapacity {
  readonly desired: number;
  /** Number of instances in service, to which the metrics of the last minutes belong. */
  readonly running: number;
  /** True while another change of the resource is in progress. */
  readonly isMoving: boolean;
  /** Minimum capacity; 1 if absent. */
  readonly least?: number;
}

/** A policy whose alarm has gone off, with its resource. */
export interface TargetTrackingAlarm {
  readonly policy: TargetTrackingPolicy;
  readonly event: AlarmEvent;
  readonly capacity: ResourceCapacity;
  /** Time since which the number of instances is unchanged: earlier measurements belong to another number. */
  readonly steadySinceMs: number;
}

export interface MetricReadOptions {
  readonly readValues: ReadMetricValues;
  readonly clock: Clock;
  /** Time since which metrics are recorded without a gap: before it, missing data means nothing. */
  readonly sinceMs: number;
}

const minuteMs = 60_000;
/** Maximum age of the newest data point of a metric. */
const lookBackMinutes = 3;
/** Time without requests after which the load counts as zero. */
const silenceMs = 15 * minuteMs;

/** Returns the capacity of all target-tracking policies when the alarm of one goes into ALARM; null for no change. */
export async function trackingCapacity(
  reading: MetricReadOptions,
  policies: readonly ScalingPolicy[],
  alarmed: TargetTrackingAlarm,
): Promise<number | null> {
  const { policy, event, capacity, steadySinceMs } = alarmed;
  const { desired, running } = capacity;
  const isHigh = event.definition.name === policy.highAlarm;
  const wanted: (number | null)[] = [];
  for (const each of policies) {
    if (each.type !== "TargetTrackingScaling") continue;
    // A policy that only adds instances does not take part in removing them.
    if (!isHigh && each.isScaleInDisabled) continue;
    const values = await lastValues(reading, each, steadySinceMs);
    // Scaling out uses the latest value, scaling in the largest recent one.
    const value = values.length === 0 ? null : isHigh ? (values.at(-1) as number) : Math.max(...values);
    wanted.push(value === null ? null : targetTrackingCapacity(value, each.targetValue, running));
  }
  const joint = combinedCapacity(wanted, desired);
  if (joint === null) return null;
  if (isHigh) return Math.max(joint, desired);
  return policy.isScaleInDisabled ? null : Math.min(joint, desired);
}

/**
 * Returns the capacity of a step policy when its alarm goes into ALARM; null if no step covers the metric's distance from the
 * threshold.
 */
export async function stepCapacity(
  { readValues }: MetricReadOptions,
  policy: StepPolicy,
  { definition, atMs }: AlarmEvent,
  state: CapacityState,
): Promise<number | null> {
  if (definition.kind !== "metric") {
    throw new Error("a step policy needs an alarm on a metric, not a composite alarm");
  }
  const { watched, threshold, evaluationPeriods } = definition;
  // The periods of the alarm's evaluation: they end on full minutes; short ones, every ten seconds.
  const stepMs = Math.min(watched.periodMs, minuteMs);
  const endMs = Math.floor(atMs / stepMs) * stepMs;
  const startMs = endMs - evaluationPeriods * watched.periodMs;
  const values = [...(await readValues(watched, { startMs, endMs })).values()];
  // If missing data points have caused ALARM, the threshold counts as the metric.
  const distance = values.length === 0 ? 0 : aggregated(values, policy.aggregation) - threshold;
  return stepScalingCapacity(policy, distance, state);
}

/** Returns the values oldest first. */
async function lastValues(
  { readValues, clock, sinceMs }: MetricReadOptions,
  { watched, isZeroWhenMissing, createdMs }: TargetTrackingPolicy,
  steadySinceMs: number,
): Promise<readonly number[]> {
  const { periodMs } = watched;
  const endMs = Math.floor(clock.epochMs() / periodMs) * periodMs;
  const found = await readValues(watched, { startMs: endMs - lookBackMinutes * minuteMs, endMs });
  const values = [...found]
    .filter(([startMs]) => startMs >= steadySinceMs)
    .toSorted(([a], [b]) => a - b)
    .map(([, value]) => value)
    // An infinite sum says nothing about the number of instances.
    .filter(Number.isFinite);
  const isSilent = isZeroWhenMissing && endMs - Math.max(createdMs, sinceMs) >= silenceMs;
  return found.size === 0 && isSilent ? [0] : values;
}

function aggregated(values: readonly number[], how: StepPolicy["aggregation"]): number {
  if (how === "Minimum") return Math.min(...values);
  if (how === "Maximum") return Math.max(...values);
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}
