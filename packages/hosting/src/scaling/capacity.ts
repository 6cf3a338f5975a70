import { unreachable } from "@galatea/base";
import type { NotScaledCode, StepAdjustment, StepPolicy, SuspendedScaling } from "./policy.ts";

/** The last change of capacity in one direction, which starts a cooldown. */
export interface PreviousScaling {
  readonly atMs: number;
  readonly from: number;
  readonly to: number;
  readonly cooldownMs: number;
}

/** The state of a scalable target at the time of a scaling decision. */
export interface CapacityState {
  readonly nowMs: number;
  /** The current desired capacity, even if it is not reached yet. */
  readonly desired: number;
  readonly minCapacity: number;
  readonly maxCapacity: number;
  readonly suspended: SuspendedScaling;
  readonly lastOut: PreviousScaling | null;
  readonly lastIn: PreviousScaling | null;
}

export type CapacityDecision =
  | { readonly do: "scale"; readonly to: number; readonly direction: "out" | "in" }
  | { readonly do: "nothing"; readonly because: "suspended" | "cooldown" | NotScaledCode };

/** Tolerance for rounding errors: metrics are sums of doubles, which may be slightly above a whole number. */
const rounding = 1e-9;

/**
 * Returns the smallest number of instances that keeps the metric at or below its target. `value` is the metric per
 * instance with `running` instances.
 */
export function targetTrackingCapacity(value: number, targetValue: number, running: number): number {
  return Math.max(0, Math.ceil((running * value) / targetValue - rounding));
}

/**
 * Returns the combined capacity of several target-tracking policies: the largest. Returns null if the known policies
 * would reduce the capacity, but the metric of another policy is unknown.
 */
export function combinedCapacity(requested: readonly (number | null)[], desired: number): number | null {
  const known = requested.filter((each) => each !== null);
  const most = Math.max(0, ...known);
  return known.length < requested.length && most < desired ? null : most;
}

/**
 * Returns the capacity of a step policy. `distance` is the alarm's metric minus the threshold. Null if no step covers
 * it.
 */
export function stepScalingCapacity(policy: StepPolicy, distance: number, state: CapacityState): number | null {
  const step = policy.steps.find((each) => covers(each, distance));
  if (step === undefined) return null;
  // Capacity that was added during the cooldown counts towards this step's addition.
  const isAdding = step.adjustment > 0 && policy.adjustmentType !== "ExactCapacity";
  const base = isAdding && isWithin(state.lastOut, state.nowMs) ? state.lastOut.from : state.desired;
  switch (policy.adjustmentType) {
    case "ExactCapacity":
      return step.adjustment;
    case "ChangeInCapacity":
      return Math.max(0, base + step.adjustment);
    case "PercentChangeInCapacity": {
      const exact = (base * Math.abs(step.adjustment)) / 100;
      // A change above 1 is rounded down; a change below 1 becomes 1.
      const total = exact > 1 ? Math.floor(exact + rounding) : Math.ceil(exact - rounding);
      return Math.max(0, base + Math.sign(step.adjustment) * Math.max(total, policy.magnitudeMin));
    }
    default:
      return unreachable(policy.adjustmentType);
  }
}

/** Applies bounds, suspensions and cooldowns to a wanted capacity. Returns the change, or the reason for no change. */
export function decideCapacity(requested: number, state: CapacityState): CapacityDecision {
  const { desired, minCapacity, maxCapacity, nowMs } = state;
  const to = Math.min(maxCapacity, Math.max(minCapacity, requested));
  if (to === desired) {
    if (requested > maxCapacity) return { do: "nothing", because: "AlreadyAtMaxCapacity" };
    if (requested < minCapacity) return { do: "nothing", because: "AlreadyAtMinCapacity" };
    return { do: "nothing", because: "AlreadyAtDesiredCapacity" };
  }
  const isOut = to > desired;
  if (isOut ? state.suspended.scaleOut : state.suspended.scaleIn) return { do: "nothing", because: "suspended" };
  // An increase is not delayed by a cooldown, because `desired` includes additions during the cooldown. A decrease
  // waits for both cooldowns.
  if (!isOut && (isWithin(state.lastIn, nowMs) || isWithin(state.lastOut, nowMs))) {
    return { do: "nothing", because: "cooldown" };
  }
  return { do: "scale", to, direction: isOut ? "out" : "in" };
}

/**
 * Returns an error text if steps overlap or leave a gap, or if a step other than the outermost is unbounded; null if
 * the steps are valid. Steps may be on one side of the threshold or on both.
 */
export function stepAdjustmentsError(steps: readonly StepAdjustment[]): string | null {
  if (steps.length === 0) return "At least one step adjustment must be specified.";
  const ordered = steps.toSorted((a, b) => (a.lower ?? -Infinity) - (b.lower ?? -Infinity));
  for (const { lower, upper } of steps) {
    if (lower === null && upper === null && steps.length > 1) {
      return "At least one bound must be specified if there are several step adjustments.";
    }
    // JSON can contain numbers that are parsed as infinity, which cannot be stored.
    if (![lower ?? 0, upper ?? 0].every(Number.isFinite)) {
      return "MetricIntervalLowerBound and MetricIntervalUpperBound must be finite numbers.";
    }
    if (lower !== null && upper !== null && lower >= upper) {
      return "MetricIntervalLowerBound must be less than MetricIntervalUpperBound.";
    }
  }
  for (const [position, step] of ordered.entries()) {
    const next = ordered[position + 1];
    if (next === undefined) break;
    if (step.upper === null || next.lower === null)
      return "At most one step adjustment may lack a lower bound, and at most one an upper bound.";
    if (step.upper > next.lower) return "Step adjustment intervals must not overlap.";
    if (step.upper < next.lower) return "There must be no gap between step adjustment intervals.";
  }
  return null;
}

/**
 * Returns true if a step covers a distance. Above the threshold, the lower bound is inclusive; below it, the upper
 * bound is.
 */
function covers({ lower, upper }: StepAdjustment, distance: number): boolean {
  const [from, to] = [lower ?? -Infinity, upper ?? Infinity];
  return distance >= 0 ? from <= distance && distance < to : from < distance && distance <= to;
}

function isWithin(last: PreviousScaling | null, nowMs: number): last is PreviousScaling {
  // The absolute difference is used. Otherwise, a clock that was set back by a day would prolong a cooldown by a day.
  return last !== null && Math.abs(nowMs - last.atMs) < last.cooldownMs;
}
