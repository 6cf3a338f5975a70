import { unreachable } from "@galatea/base";
import type { AlarmState, ThresholdComparison, MissingDataTreatment } from "./alarm.ts";

export interface EvaluationRule {
  readonly threshold: number;
  readonly comparison: ThresholdComparison;
  readonly evaluationPeriods: number;
  readonly datapointsToAlarm: number;
  readonly missing: MissingDataTreatment;
}

export interface AlarmEvaluation {
  readonly state: AlarmState;
  /** Indexes, in the evaluated window, of the datapoints that determined the state, oldest first. */
  readonly decided: readonly number[];
  readonly breachingCount: number;
  /** Number of missing datapoints that were replaced by values. */
  readonly filledCount: number;
}

const breaches: Readonly<Record<ThresholdComparison, (value: number, threshold: number) => boolean>> = {
  GreaterThanOrEqualToThreshold: (value, threshold) => value >= threshold,
  GreaterThanThreshold: (value, threshold) => value > threshold,
  LessThanThreshold: (value, threshold) => value < threshold,
  LessThanOrEqualToThreshold: (value, threshold) => value <= threshold,
};

/** Returns the number of periods to read. It is larger than EvaluationPeriods because recent datapoints may be missing. */
export function periodsToRead({ evaluationPeriods }: Pick<EvaluationRule, "evaluationPeriods">): number {
  return evaluationPeriods + 2;
}

/**
 * Returns the alarm state for a window of values, oldest first; null is a period without a value. Missing values are
 * ignored if the window has at least EvaluationPeriods other values. Otherwise, TreatMissingData decides how they
 * count. With `missing`, fewer values are enough for ALARM if all of them breach and the oldest is at least
 * DatapointsToAlarm periods old.
 */
export function evaluateWindow(
  window: readonly (number | null)[],
  rule: EvaluationRule,
  current: AlarmState,
): AlarmEvaluation {
  const { evaluationPeriods: needed, datapointsToAlarm } = rule;
  const isBreach = (position: number): boolean => breaches[rule.comparison](window[position] as number, rule.threshold);
  const there = window.flatMap((value, position) => (value === null ? [] : [position]));
  const decided = there.slice(-needed);
  const breachingCount = decided.filter(isBreach).length;
  const evaluated = (state: AlarmState, filledCount = 0): AlarmEvaluation => ({
    state,
    decided,
    breachingCount,
    filledCount,
  });
  if (breachingCount >= datapointsToAlarm) return evaluated("ALARM");
  if (there.length >= needed) return evaluated("OK");
  const missingCount = needed - there.length;
  switch (rule.missing) {
    case "breaching":
      return evaluated(breachingCount + missingCount >= datapointsToAlarm ? "ALARM" : "OK", missingCount);
    case "notBreaching":
      return evaluated("OK", missingCount);
    case "missing":
      if (decided.length === 0) return evaluated("INSUFFICIENT_DATA", missingCount);
      if (breachingCount < decided.length) return evaluated("OK", missingCount);
      return evaluated(isOldEnough() ? "ALARM" : current, missingCount);
    case "ignore":
      return evaluated(breachingCount < decided.length ? "OK" : current, missingCount);
    default:
      return unreachable(rule.missing);
  }

  function isOldEnough(): boolean {
    return window.length - (decided[0] as number) >= datapointsToAlarm;
  }
}

/**
 * Returns the minimum number of samples for a percentile. CloudWatch requires ten samples in the tail of the
 * distribution: 100 samples for p90, 1,000 for p99.
 */
export function percentileSamplesMin(percentile: number): number {
  const fraction = percentile / 100;
  if (fraction === 0 || fraction === 1) return 1;
  return Math.ceil(10 / (fraction < 0.5 ? fraction : 1 - fraction) - 1e-6);
}
