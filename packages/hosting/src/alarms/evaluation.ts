import { unreachable } from "@galatea/base";
import type { AlarmState, ThresholdComparison, MissingData } from "./alarm.ts";

export interface EvaluationRule {
  readonly threshold: number;
  readonly comparison: ThresholdComparison;
  readonly evaluationPeriods: number;
  readonly datapointsToAlarm: number;
  readonly missing: MissingData;
}

export interface Evaluation {
  readonly state: AlarmState;
  /** Positions in the window of the datapoints that decided, oldest first. */
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

/** Returns the number of periods to read: some more than are evaluated, because datapoints may be late or missing. */
export function windowPeriods({ evaluationPeriods }: Pick<EvaluationRule, "evaluationPeriods">): number {
  return evaluationPeriods + 2;
}

/**
 * Returns the state for the values of the last periods, oldest first, null where nothing was recorded. Missing values
 * do not matter where the window has enough others; otherwise the rule's setting replaces them. An alarm goes off
 * before it has all its datapoints when every existing one breaches and the oldest is old enough: later datapoints
 * could not change the result.
 */
export function evaluateWindow(
  window: readonly (number | null)[],
  rule: EvaluationRule,
  current: AlarmState,
): Evaluation {
  const { evaluationPeriods: needed, datapointsToAlarm } = rule;
  const isBreach = (place: number): boolean => breaches[rule.comparison](window[place] as number, rule.threshold);
  const there = window.flatMap((value, place) => (value === null ? [] : [place]));
  const decided = there.slice(-needed);
  const breachingCount = decided.filter(isBreach).length;
  const evaluated = (state: AlarmState, filledCount = 0): Evaluation => ({
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

/** Returns the number of samples that a percentile needs, by CloudWatch's rule: ten outside it on its shorter side. */
export function samplesNeeded(percentile: number): number {
  const fraction = percentile / 100;
  if (fraction === 0 || fraction === 1) return 1;
  return Math.ceil(10 / (fraction < 0.5 ? fraction : 1 - fraction) - 1e-6);
}
