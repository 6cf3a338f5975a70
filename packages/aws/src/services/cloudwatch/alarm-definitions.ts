import {
  alarmNameFromArn,
  parseAlarmRule,
  AlarmRuleError,
  type ResolveAlarmAction,
  type AlarmBase,
  type CompositeAlarm,
  type ThresholdComparison,
  type MetricAlarm,
  type MissingDataTreatment,
  type Suppressor,
  type EvaluatedMetric,
} from "@galatea/hosting/alarms";
import { AwsError } from "@galatea/base";
import type { CloudwatchInputs } from "../../spec/gen/cloudwatch.ts";
import { rejectUnsupportedMembers, type UnsupportedMember } from "../../wire/index.ts";
import { parseDataQueries } from "./data-queries.ts";
import { parseDimensions } from "./dimensions.ts";
import { parseStatistic } from "./statistics.ts";

type MetricAlarmInput = CloudwatchInputs["PutMetricAlarmInput"];
type CompositeAlarmInput = CloudwatchInputs["PutCompositeAlarmInput"];

export interface AlarmContext {
  readonly arn: string;
  readonly nowMs: number;
  readonly actions: ResolveAlarmAction;
}

const daySeconds = 86_400;
const missingWords: readonly string[] = [
  "missing",
  "ignore",
  "breaching",
  "notBreaching",
] satisfies MissingDataTreatment[];
const comparisons: readonly string[] = [
  "GreaterThanOrEqualToThreshold",
  "GreaterThanThreshold",
  "LessThanThreshold",
  "LessThanOrEqualToThreshold",
] satisfies ThresholdComparison[];

const refusedMetricMembers: readonly UnsupportedMember[] = [
  // Members of anomaly detection models.
  { path: "ThresholdMetricId" },
  { path: "EvaluationWindow" },
  { path: "WarmUpConfiguration" },
  { path: "EvaluationCriteria" },
  { path: "EvaluationInterval" },
  { path: "ActionConfiguration" },
];

const refusedCompositeMembers: readonly UnsupportedMember[] = [{ path: "ActionConfiguration" }];
/** Maximum wait period and extension period of an actions suppressor. */
const periodSecondsMax = 7 * daySeconds;

/** Parses PutMetricAlarm's input, with the checks that the published service model does not contain. Throws AwsError. */
export function parseMetricAlarm(input: MetricAlarmInput, facing: AlarmContext): MetricAlarm {
  rejectUnsupportedMembers(input, refusedMetricMembers, { code: "ValidationError" });
  const { EvaluationPeriods: periods, DatapointsToAlarm: datapoints, Threshold: threshold } = input;
  const { ComparisonOperator: comparison, TreatMissingData: missing } = input;
  if (periods === undefined) throw missingParameter("EvaluationPeriods");
  if (comparison === undefined) throw missingParameter("ComparisonOperator");
  if (!comparisons.includes(comparison)) {
    throw invalid(
      `ComparisonOperator ${comparison} needs anomaly detection, which is not supported by this platform yet.`,
    );
  }
  if (threshold === undefined) throw missingParameter("Threshold");
  if (!Number.isFinite(threshold)) throw invalid("Threshold must be a number.");
  if (datapoints !== undefined && datapoints > periods) {
    throw invalid("DatapointsToAlarm must be less than or equal to EvaluationPeriods.");
  }
  if (missing !== undefined && !missingWords.includes(missing)) {
    throw invalid(`TreatMissingData must be one of ${missingWords.join(", ")}; it is ${missing}.`);
  }
  const watched = input.Metrics === undefined ? watchedMetric(input) : watchedQueries(input);
  checkSpan(periods, watched.periodMs / 1000);
  return {
    kind: "metric",
    ...alarmFacts(input, facing),
    watched,
    threshold,
    comparison: comparison as ThresholdComparison,
    evaluationPeriods: periods,
    datapointsToAlarm: datapoints ?? periods,
    hasDatapointsToAlarm: datapoints !== undefined,
    missing: (missing as MissingDataTreatment | undefined) ?? null,
    ...(ignoresFewSamples(input, watched) ? { ignoresFewSamples: true } : {}),
  };
}

function ignoresFewSamples(
  { EvaluateLowSampleCountPercentile: word }: MetricAlarmInput,
  watched: EvaluatedMetric,
): boolean {
  if (word === undefined) return false;
  if (word !== "evaluate" && word !== "ignore") {
    throw invalid(`EvaluateLowSampleCountPercentile must be evaluate or ignore; it is ${word}.`);
  }
  if (watched.kind !== "metric" || !/^p/i.test(watched.statistic)) {
    throw invalid("EvaluateLowSampleCountPercentile is for alarms on a percentile.");
  }
  return word === "ignore";
}

/** Parses PutCompositeAlarm's input. Throws AwsError for an invalid rule. */
export function parseCompositeAlarm(input: CompositeAlarmInput, facing: AlarmContext): CompositeAlarm {
  rejectUnsupportedMembers(input, refusedCompositeMembers, { code: "ValidationError" });
  try {
    parseAlarmRule(input.AlarmRule);
  } catch (error) {
    if (error instanceof AlarmRuleError) throw invalid(`AlarmRule cannot be read: ${error.message}.`);
    throw error;
  }
  const suppressor = suppressorOf(input);
  const facts = alarmFacts(input, facing);
  return { kind: "composite", ...facts, rule: input.AlarmRule, ...(suppressor === null ? {} : { suppressor }) };
}

function suppressorOf(input: CompositeAlarmInput): Suppressor | null {
  const { ActionsSuppressor: alarm } = input;
  const { ActionsSuppressorWaitPeriod: wait, ActionsSuppressorExtensionPeriod: extension } = input;
  if (alarm === undefined || alarm === "") {
    if (wait === undefined && extension === undefined) return null;
    throw invalid("ActionsSuppressorWaitPeriod and ActionsSuppressorExtensionPeriod need an ActionsSuppressor.");
  }
  if (wait === undefined) throw missingParameter("ActionsSuppressorWaitPeriod");
  if (extension === undefined) throw missingParameter("ActionsSuppressorExtensionPeriod");
  if (Math.min(wait, extension) < 0 || Math.max(wait, extension) > periodSecondsMax) {
    throw invalid(
      `ActionsSuppressorWaitPeriod and ActionsSuppressorExtensionPeriod must be from 0 to ${periodSecondsMax} seconds.`,
    );
  }
  return { alarm: alarmNameFromArn(alarm), waitMs: wait * 1000, extensionMs: extension * 1000 };
}

function alarmFacts(input: MetricAlarmInput | CompositeAlarmInput, { arn, nowMs, actions }: AlarmContext): AlarmBase {
  const byState = {
    OK: input.OKActions ?? [],
    ALARM: input.AlarmActions ?? [],
    INSUFFICIENT_DATA: input.InsufficientDataActions ?? [],
  };
  for (const action of Object.values(byState).flat()) {
    if (actions(action) !== null) continue;
    const text = `The action ${action} is not supported by this platform: alarms run scaling policies and publish to SNS topics.`;
    throw invalid(text);
  }
  return {
    name: input.AlarmName,
    arn,
    description: input.AlarmDescription ?? null,
    actionsEnabled: input.ActionsEnabled ?? true,
    actions: byState,
    configuredMs: nowMs,
    tags: (input.Tags ?? []).map(({ Key, Value }) => ({ key: Key, value: Value })),
  };
}

function watchedMetric(input: MetricAlarmInput): EvaluatedMetric {
  const { Namespace: namespace, MetricName: metricName, Period: period, Statistic, ExtendedStatistic } = input;
  if (metricName === undefined) throw missingParameter("MetricName");
  if (namespace === undefined) throw missingParameter("Namespace");
  if (period === undefined) throw missingParameter("Period");
  if ((Statistic === undefined) === (ExtendedStatistic === undefined)) {
    throw invalid("Exactly one of the parameters Statistic and ExtendedStatistic must be specified.");
  }
  const statistic = Statistic ?? (ExtendedStatistic as string);
  parseStatistic(statistic, Statistic === undefined ? "ExtendedStatistic" : "Statistic");
  checkAlarmPeriod(period);
  const metric = { namespace, metricName, dimensions: parseDimensions(input.Dimensions) };
  return { kind: "metric", metric, statistic, unit: input.Unit ?? null, periodMs: period * 1000 };
}

function watchedQueries(input: MetricAlarmInput): EvaluatedMetric {
  const named = (["MetricName", "Namespace", "Period", "Statistic", "ExtendedStatistic", "Dimensions"] as const).find(
    (name) => input[name] !== undefined,
  );
  if (named !== undefined) throw invalid(`The parameter ${named} cannot be used together with Metrics.`);
  const value = input.Metrics ?? [];
  const queries = parseDataQueries(value);
  const returned = queries.filter((query) => query.isReturned);
  if (returned.length !== 1) throw invalid("Exactly one element of Metrics must have ReturnData true.");
  const periods = queries.map((query) => (query.kind === "metric" ? query.stat.Period : (query.periodSeconds ?? 0)));
  const period = Math.max(...periods);
  if (period === 0) throw invalid("Metrics must give a Period.");
  checkAlarmPeriod(period);
  return { kind: "queries", queries: value, periodMs: period * 1000 };
}

function checkAlarmPeriod(seconds: number): void {
  if (seconds === 10 || seconds === 20 || seconds === 30 || (seconds >= 60 && seconds % 60 === 0)) return;
  throw invalid(`Period must be 10, 20, 30 or a multiple of 60; it is ${seconds}.`);
}

function checkSpan(periods: number, seconds: number): void {
  const days = seconds >= 3600 ? 7 : 1;
  if (periods * seconds <= days * daySeconds) return;
  const span = days === 1 ? "a day" : `${days} days`;
  throw invalid(
    `Metrics cannot be checked across more than ${span} (EvaluationPeriods * Period must be <= ${days * daySeconds}).`,
  );
}

function missingParameter(name: string): AwsError {
  return new AwsError("MissingParameter", `The parameter ${name} is required.`);
}

function invalid(text: string): AwsError {
  return new AwsError("ValidationError", text);
}
