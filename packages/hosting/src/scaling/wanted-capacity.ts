import type { AlarmEvent, ReadValues } from "../alarms/index.ts";
import type { Clock } from "@galatea/base";
import { jointCapacity, steppedCapacity, trackedCapacity, type CapacityState } from "./capacity.ts";
import type { ScalingPolicy, StepPolicy, TrackingPolicy } from "./policy.ts";

export interface ResourceCapacity {
  readonly desired: number;
  /** What serves now: the metrics of the last minutes are theirs. */
  readonly running: number;
  /** Whether something else changes it just now. */
  readonly isMoving: boolean;
  /** The least that it may have; 1 unless given. */
  readonly least?: number;
}

/** An alarm of a policy that has gone off, and what it finds. */
export interface TrackingAlarmed {
  readonly policy: TrackingPolicy;
  readonly event: AlarmEvent;
  readonly capacity: ResourceCapacity;
  /** Since when there are as many instances as now: what was measured before is of others. */
  readonly steadySinceMs: number;
}

export interface MetricReading {
  readonly readValues: ReadValues;
  readonly clock: Clock;
  /** Since when metrics are recorded without a gap: before, what is missing says nothing. */
  readonly sinceMs: number;
}

const minuteMs = 60_000;
/** How far back the newest datapoint of a metric is looked for. */
const lookBackMinutes = 3;
/** For so long nothing has to have been asked before that is taken for a load of nothing. */
const silenceMs = 15 * minuteMs;

/** What all policies that follow metrics want, when the alarm of one goes off; null: nothing is to be done. */
export async function trackedByAlarm(
  reading: MetricReading,
  policies: readonly ScalingPolicy[],
  alarmed: TrackingAlarmed,
): Promise<number | null> {
  const { policy, event, capacity, steadySinceMs } = alarmed;
  const { desired, running } = capacity;
  const isHigh = event.definition.name === policy.highAlarm;
  const wanted: (number | null)[] = [];
  for (const each of policies) {
    if (each.type !== "TargetTrackingScaling") continue;
    // One that only adds instances has no say in taking them away.
    if (!isHigh && each.isScaleInDisabled) continue;
    const values = await lastValues(reading, each, steadySinceMs);
    // Out by what is asked now, in by the most that was asked lately.
    const value = values.length === 0 ? null : isHigh ? (values.at(-1) as number) : Math.max(...values);
    wanted.push(value === null ? null : trackedCapacity(value, each.targetValue, running));
  }
  const joint = jointCapacity(wanted, desired);
  if (joint === null) return null;
  if (isHigh) return Math.max(joint, desired);
  return policy.isScaleInDisabled ? null : Math.min(joint, desired);
}

/** What a step policy wants when an alarm goes off; null where no step covers how far its metric is from the threshold. */
export async function steppedByAlarm(
  { readValues }: MetricReading,
  policy: StepPolicy,
  { definition, atMs }: AlarmEvent,
  state: CapacityState,
): Promise<number | null> {
  if (definition.kind !== "metric") {
    throw new Error("a composite alarm has no metric, of whose distance from a threshold a step policy makes its step");
  }
  const { watched, threshold, evaluationPeriods } = definition;
  // What the alarm has looked at: its periods end where minutes do, or every ten seconds for short ones.
  const stepMs = Math.min(watched.periodMs, minuteMs);
  const endMs = Math.floor(atMs / stepMs) * stepMs;
  const startMs = endMs - evaluationPeriods * watched.periodMs;
  const values = [...(await readValues(watched, { startMs, endMs })).values()];
  // An alarm that missing datapoints have set off is at its threshold.
  const distance = values.length === 0 ? 0 : aggregated(values, policy.aggregation) - threshold;
  return steppedCapacity(policy, distance, state);
}

/** Oldest first. */
async function lastValues(
  { readValues, clock, sinceMs }: MetricReading,
  { watched, isZeroWhenMissing, createdMs }: TrackingPolicy,
  steadySinceMs: number,
): Promise<readonly number[]> {
  const { periodMs } = watched;
  const endMs = Math.floor(clock.epochMs() / periodMs) * periodMs;
  const found = await readValues(watched, { startMs: endMs - lookBackMinutes * minuteMs, endMs });
  const values = [...found]
    .filter(([startMs]) => startMs >= steadySinceMs)
    .toSorted(([a], [b]) => a - b)
    .map(([, value]) => value)
    // A sum that is beyond all numbers says nothing of how many instances it takes.
    .filter(Number.isFinite);
  const isSilent = isZeroWhenMissing && endMs - Math.max(createdMs, sinceMs) >= silenceMs;
  return found.size === 0 && isSilent ? [0] : values;
}

function aggregated(values: readonly number[], how: StepPolicy["aggregation"]): number {
  if (how === "Minimum") return Math.min(...values);
  if (how === "Maximum") return Math.max(...values);
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}
