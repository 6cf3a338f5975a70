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
  /** The datapoints that decided, oldest first, by their place in the window. */
  readonly decided: readonly number[];
  readonly breachingCount: number;
  /** Missing datapoints that stood for values. */
  readonly filledCount: number;
}

const breaches: Readonly<Record<ThresholdComparison, (value: number, threshold: number) => boolean>> = {
  GreaterThanOrEqualToThreshold: (value, threshold) => value >= threshold,
  GreaterThanThreshold: (value, threshold) => value > threshold,
  LessThanThreshold: (value, threshold) => value < threshold,
  LessThanOrEqualToThreshold: (value, threshold) => value <= threshold,
};

/** Periods that are looked at: some more than are evaluated, because datapoints may be late or missing. */
export function windowPeriods({ evaluationPeriods }: Pick<EvaluationRule, "evaluationPeriods">): number {
  return evaluationPeriods + 2;
}

/**
 * What state the values of the last periods say, oldest first, null where nothing was recorded. Where enough values are in the window,
 * missing ones do not matter; else they stand for what the rule says. An alarm goes off before it has all its datapoints when every
 * one there is breaches and the oldest is as old as it takes: waiting for the rest could not change it.
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

/** How many samples a percentile takes to say something, as CloudWatch has it: ten beyond it on its shorter side. */
export function samplesNeeded(percentile: number): number {
  const fraction = percentile / 100;
  if (fraction === 0 || fraction === 1) return 1;
  return Math.ceil(10 / (fraction < 0.5 ? fraction : 1 - fraction) - 1e-6);
}
