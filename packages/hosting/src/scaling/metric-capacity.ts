import type { AlarmEvent, ReadMetricValues } from "../alarms/index.ts";
import type { Clock } from "@galatea/base";
import { combinedCapacity, stepScalingCapacity, targetTrackingCapacity, type CapacityState } from "./capacity.ts";
import type { ScalingPolicy, StepPolicy, TargetTrackingPolicy } from "./policy.ts";

export interface ResourceCapacity {
  readonly desired: number;
  /** Number of instances in service. The recent metrics were measured with this number. */
  readonly running: number;
  /** True while another change of the resource is in progress. */
  readonly isMoving: boolean;
  /** Minimum capacity; 1 if absent. */
  readonly least?: number;
}

/** A policy whose alarm went into ALARM, and the capacity of its resource. */
export interface TargetTrackingAlarm {
  readonly policy: TargetTrackingPolicy;
  readonly event: AlarmEvent;
  readonly capacity: ResourceCapacity;
  /** Epoch time of the last change of the number of instances. Earlier measurements belong to another number. */
  readonly steadySinceMs: number;
}

export interface MetricReadOptions {
  readonly readValues: ReadMetricValues;
  readonly clock: Clock;
  /** Epoch time since which metrics are recorded without a gap. Missing data before it does not mean zero requests. */
  readonly sinceMs: number;
}

const minuteMs = 60_000;
/** Maximum age of the newest data point of a metric, in minutes. */
const lookBackMinutes = 3;
/** Milliseconds without data points after which the load counts as zero. */
const silenceMs = 15 * minuteMs;

/**
 * Returns the combined capacity of all target-tracking policies when the alarm of one policy goes into ALARM; null for no
 * change.
 */
export async function trackingCapacity(
  reading: MetricReadOptions,
  policies: readonly ScalingPolicy[],
  alarmed: TargetTrackingAlarm,
): Promise<number | null> {
  const { policy, event, capacity, steadySinceMs } = alarmed;
  const { desired, running } = capacity;
  const isHigh = event.definition.name === policy.highAlarm;
  const requested: (number | null)[] = [];
  for (const each of policies) {
    if (each.type !== "TargetTrackingScaling") continue;
    // Policies that only add instances are ignored when instances are removed.
    if (!isHigh && each.isScaleInDisabled) continue;
    const values = await lastValues(reading, each, steadySinceMs);
    // Scaling out uses the latest value; scaling in uses the largest recent value.
    const value = values.length === 0 ? null : isHigh ? (values.at(-1) as number) : Math.max(...values);
    requested.push(value === null ? null : targetTrackingCapacity(value, each.targetValue, running));
  }
  const joint = combinedCapacity(requested, desired);
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
  // The periods that the alarm has evaluated. They end on full minutes, or every ten seconds for shorter periods.
  const stepMs = Math.min(watched.periodMs, minuteMs);
  const endMs = Math.floor(atMs / stepMs) * stepMs;
  const startMs = endMs - evaluationPeriods * watched.periodMs;
  const values = [...(await readValues(watched, { startMs, endMs })).values()];
  // If missing data points have caused ALARM, the metric is assumed to equal the threshold.
  const distance = values.length === 0 ? 0 : aggregated(values, policy.aggregation) - threshold;
  return stepScalingCapacity(policy, distance, state);
}

/** Returns the recent values of a policy's metric, oldest first. */
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
    // The number of instances cannot be computed from an infinite sum.
    .filter(Number.isFinite);
  const isSilent = isZeroWhenMissing && endMs - Math.max(createdMs, sinceMs) >= silenceMs;
  return found.size === 0 && isSilent ? [0] : values;
}

function aggregated(values: readonly number[], how: StepPolicy["aggregation"]): number {
  if (how === "Minimum") return Math.min(...values);
  if (how === "Maximum") return Math.max(...values);
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}
