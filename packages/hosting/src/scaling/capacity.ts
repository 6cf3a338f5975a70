import { unreachable } from "@galatea/base";
import type { NotScaledCode, StepAdjustment, StepPolicy, Suspended } from "./policy.ts";

/** A change of capacity that a cooldown remembers. */
export interface ScaledBefore {
  readonly atMs: number;
  readonly from: number;
  readonly to: number;
  readonly cooldownMs: number;
}

/** What is known of a scalable target when its capacity is decided. */
export interface CapacityState {
  readonly nowMs: number;
  /** What is wanted so far, whether or not it is there by now. */
  readonly desired: number;
  readonly minCapacity: number;
  readonly maxCapacity: number;
  readonly suspended: Suspended;
  readonly lastOut: ScaledBefore | null;
  readonly lastIn: ScaledBefore | null;
}

export type CapacityDecision =
  | { readonly do: "scale"; readonly to: number; readonly direction: "out" | "in" }
  | { readonly do: "nothing"; readonly because: "suspended" | "cooldown" | NotScaledCode };

/** A value a hair above a whole number is that number: metrics are sums of doubles. */
const rounding = 1e-9;

/** The fewest instances that keep the metric at or under its target, when so many give this value of it each. */
export function trackedCapacity(value: number, targetValue: number, running: number): number {
  return Math.max(0, Math.ceil((running * value) / targetValue - rounding));
}

/**
 * What several policies that follow metrics want together: the most of all. Null where capacity could shrink but one of them does not know
 * its metric.
 */
export function jointCapacity(wanted: readonly (number | null)[], desired: number): number | null {
  const known = wanted.filter((each) => each !== null);
  const most = Math.max(0, ...known);
  return known.length < wanted.length && most < desired ? null : most;
}

/** The capacity that a step policy wants when its alarm's metric is so far from the threshold; null where no step covers it. */
export function steppedCapacity(policy: StepPolicy, distance: number, state: CapacityState): number | null {
  const step = policy.steps.find((each) => covers(each, distance));
  if (step === undefined) return null;
  // What was added during the cooldown is part of what this step adds.
  const isAdding = step.adjustment > 0 && policy.adjustmentType !== "ExactCapacity";
  const base = isAdding && isWithin(state.lastOut, state.nowMs) ? state.lastOut.from : state.desired;
  switch (policy.adjustmentType) {
    case "ExactCapacity":
      return step.adjustment;
    case "ChangeInCapacity":
      return Math.max(0, base + step.adjustment);
    case "PercentChangeInCapacity": {
      const exact = (base * Math.abs(step.adjustment)) / 100;
      // More than one is rounded down, less than one is one.
      const whole = exact > 1 ? Math.floor(exact + rounding) : Math.ceil(exact - rounding);
      return Math.max(0, base + Math.sign(step.adjustment) * Math.max(whole, policy.magnitudeMin));
    }
    default:
      return unreachable(policy.adjustmentType);
  }
}

/** Whether the capacity changes to what is wanted, within bounds, suspensions and cooldowns. */
export function decideCapacity(wanted: number, state: CapacityState): CapacityDecision {
  const { desired, minCapacity, maxCapacity, nowMs } = state;
  const to = Math.min(maxCapacity, Math.max(minCapacity, wanted));
  if (to === desired) {
    if (wanted > maxCapacity) return { do: "nothing", because: "AlreadyAtMaxCapacity" };
    if (wanted < minCapacity) return { do: "nothing", because: "AlreadyAtMinCapacity" };
    return { do: "nothing", because: "AlreadyAtDesiredCapacity" };
  }
  const isOut = to > desired;
  if (isOut ? state.suspended.scaleOut : state.suspended.scaleIn) return { do: "nothing", because: "suspended" };
  // More is always given at once: what was added within the cooldown is in `desired`. Less waits for both cooldowns.
  if (!isOut && (isWithin(state.lastIn, nowMs) || isWithin(state.lastOut, nowMs))) {
    return { do: "nothing", because: "cooldown" };
  }
  return { do: "scale", to, direction: isOut ? "out" : "in" };
}

/**
 * Whether steps leave no gap and do not overlap, and only the outermost are without end. Their bounds are on one side of the threshold or on
 * both. Null, or a sentence.
 */
export function stepsFault(steps: readonly StepAdjustment[]): string | null {
  if (steps.length === 0) return "At least one step adjustment must be specified.";
  const ordered = steps.toSorted((a, b) => (a.lower ?? -Infinity) - (b.lower ?? -Infinity));
  for (const { lower, upper } of steps) {
    if (lower === null && upper === null && steps.length > 1) {
      return "At least one bound must be specified where there are several step adjustments.";
    }
    // JSON can name what is no number, and no record keeps it.
    if (![lower ?? 0, upper ?? 0].every(Number.isFinite)) {
      return "MetricIntervalLowerBound and MetricIntervalUpperBound must be finite numbers.";
    }
    if (lower !== null && upper !== null && lower >= upper) {
      return "MetricIntervalLowerBound must be less than MetricIntervalUpperBound.";
    }
  }
  for (const [place, step] of ordered.entries()) {
    const next = ordered[place + 1];
    if (next === undefined) break;
    if (step.upper === null || next.lower === null)
      return "At most one step adjustment may be without an end on each side.";
    if (step.upper > next.lower) return "Step adjustment intervals must not overlap.";
    if (step.upper < next.lower) return "There must be no gap between step adjustment intervals.";
  }
  return null;
}

/** Above the threshold the lower bound is inclusive, below it the upper one is. */
function covers({ lower, upper }: StepAdjustment, distance: number): boolean {
  const [from, to] = [lower ?? -Infinity, upper ?? Infinity];
  return distance >= 0 ? from <= distance && distance < to : from < distance && distance <= to;
}

function isWithin(last: ScaledBefore | null, nowMs: number): last is ScaledBefore {
  // By either sign: a clock that was set back by a day prolongs no cooldown by a day.
  return last !== null && Math.abs(nowMs - last.atMs) < last.cooldownMs;
}
