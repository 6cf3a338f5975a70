import { unreachable } from "@galatea/base";
import type { AlarmState, ThresholdComparison, MetricAlarm } from "./alarm.ts";
import type { AlarmEvaluation } from "./evaluation.ts";

/** The values that an evaluation reads, oldest first; null is a period without a value. */
export interface EvaluationInput {
  readonly values: readonly (number | null)[];
  readonly startMs: number;
  readonly queriedMs: number;
}

const comparisonWords: Readonly<Record<ThresholdComparison, string>> = {
  GreaterThanOrEqualToThreshold: "greater than or equal to",
  GreaterThanThreshold: "greater than",
  LessThanThreshold: "less than",
  LessThanOrEqualToThreshold: "less than or equal to",
};
const datapointsNamedMax = 20;

/** Returns CloudWatch's StateReason for the result of an evaluation. */
export function stateReason(
  alarm: MetricAlarm,
  evaluation: AlarmEvaluation,
  looked: EvaluationInput,
  before: AlarmState,
): string {
  const { decided, breachingCount, filledCount, state } = evaluation;
  const { evaluationPeriods, datapointsToAlarm, watched } = alarm;
  const filled = `${counted(filledCount, "missing datapoint")} ${wereOrWas(filledCount)} treated as [${missingDataText(alarm)}]`;
  if (state === "INSUFFICIENT_DATA")
    return `Insufficient Data: ${counted(evaluationPeriods, "datapoint")} ${wereOrWas(evaluationPeriods)} unknown.`;
  if (decided.length === 0) {
    const periods = counted(evaluationPeriods, "period");
    return `Threshold Crossed: no datapoints were received for ${periods} and ${filled}.`;
  }
  const values = decided.map((position) => {
    const time = dateText(looked.startMs + position * watched.periodMs);
    return `${decimal(looked.values[position] as number)} (${time})`;
  });
  const named = values.slice(-datapointsNamedMax).join(", ");
  const isAlarm = state === "ALARM";
  const count = isAlarm ? breachingCount : decided.length - breachingCount;
  const needed = isAlarm ? datapointsToAlarm : evaluationPeriods - datapointsToAlarm + 1;
  const verb = `${wereOrWas(count)} ${isAlarm ? "" : "not "}${comparisonWords[alarm.comparison]}`;
  const threshold = `the threshold (${decimal(alarm.threshold)})`;
  const and = filledCount > 0 && alarm.missing !== null && alarm.missing !== "missing" ? ` and ${filled}` : "";
  const [from, to] = isAlarm
    ? [before === "ALARM" ? "OK" : before, "ALARM"]
    : [before === "OK" ? "ALARM" : before, "OK"];
  return (
    `Threshold Crossed: ${count} out of the last ${decided.length} datapoints [${named}] ${verb} ${threshold}${and} ` +
    `(minimum ${counted(needed, "datapoint")} for ${from} -> ${to} transition).`
  );
}

/** Returns CloudWatch's StateReasonData: the reason of an evaluation as JSON text. */
export function stateReasonData(alarm: MetricAlarm, evaluation: AlarmEvaluation, looked: EvaluationInput): string {
  const { watched } = alarm;
  return JSON.stringify({
    version: "1.0",
    queryDate: timeText(looked.queriedMs),
    startDate: timeText(looked.startMs + (evaluation.decided[0] ?? 0) * watched.periodMs),
    ...(watched.kind === "metric" ? { statistic: watched.statistic } : {}),
    period: watched.periodMs / 1000,
    recentDatapoints: evaluation.decided.map((position) => looked.values[position]).slice(-datapointsNamedMax),
    threshold: alarm.threshold,
    evaluatedDatapoints: evaluation.decided
      .map((position) => ({
        timestamp: timeText(looked.startMs + position * watched.periodMs),
        value: looked.values[position],
      }))
      .toReversed()
      .slice(0, datapointsNamedMax),
  });
}

/** CloudWatch's StateReason of an alarm before its first evaluation. */
export const initialStateReason = "Unchecked: Initial alarm creation";

function missingDataText({ missing }: MetricAlarm): string {
  switch (missing) {
    case "breaching":
      return "Breaching";
    case "notBreaching":
      return "NonBreaching";
    case "ignore":
      return "Ignored";
    case "missing":
    case null:
      return "Missing";
    default:
      return unreachable(missing);
  }
}

function counted(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? "" : "s"}`;
}

function wereOrWas(count: number): string {
  return count === 1 ? "was" : "were";
}

/** Formats 5 as `5.0`, as in CloudWatch's sentences. */
function decimal(value: number): string {
  return Number.isInteger(value) ? value.toFixed(1) : String(value);
}

/** Formats a date as `22/11/26 19:05:00`. */
function dateText(epochMs: number): string {
  const [day, time] = new Date(epochMs).toISOString().split(/[T.]/) as [string, string];
  const [year, month, date] = day.split("-") as [string, string, string];
  return `${date}/${month}/${year.slice(2)} ${time}`;
}

function timeText(epochMs: number): string {
  return new Date(epochMs).toISOString().replace("Z", "+0000");
}
