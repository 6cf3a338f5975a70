import type { MetricName } from "@galatea/base/metrics";

export const alarmStates = ["OK", "ALARM", "INSUFFICIENT_DATA"] as const;

export type AlarmState = (typeof alarmStates)[number];

/** CloudWatch's TreatMissingData: the treatment of a period without recorded values. */
export type MissingDataTreatment = "missing" | "ignore" | "breaching" | "notBreaching";

export type ThresholdComparison =
  | "GreaterThanOrEqualToThreshold"
  | "GreaterThanThreshold"
  | "LessThanThreshold"
  | "LessThanOrEqualToThreshold";

/** The input of a metric alarm: a metric with a statistic, or GetMetricData queries of which one returns the values to evaluate. */
export type EvaluatedMetric =
  | {
      readonly kind: "metric";
      readonly metric: MetricName;
      /** One of CloudWatch's five statistics, or a percentile. */
      readonly statistic: string;
      readonly unit: string | null;
      readonly periodMs: number;
    }
  | { readonly kind: "queries"; readonly queries: readonly object[]; readonly periodMs: number };

export interface AlarmTag {
  readonly key: string;
  readonly value: string;
}

/** The fields that metric alarms and composite alarms have in common. */
export interface AlarmBase {
  readonly name: string;
  readonly arn: string;
  readonly description: string | null;
  readonly actionsEnabled: boolean;
  /** ARNs of the actions that run when the alarm enters a state, by state. */
  readonly actions: Readonly<Record<AlarmState, readonly string[]>>;
  readonly configuredMs: number;
  readonly tags: readonly AlarmTag[];
}

export interface MetricAlarm extends AlarmBase {
  readonly kind: "metric";
  readonly watched: EvaluatedMetric;
  readonly threshold: number;
  readonly comparison: ThresholdComparison;
  readonly evaluationPeriods: number;
  readonly datapointsToAlarm: number;
  /**
   * True if the PutMetricAlarm request contained DatapointsToAlarm. DescribeAlarms returns the field only in this case.
   */
  readonly hasDatapointsToAlarm: boolean;
  /** TreatMissingData of the request. Null if the request did not contain it; CloudWatch's default is `missing`. */
  readonly missing: MissingDataTreatment | null;
  /** True if EvaluateLowSampleCountPercentile is `ignore`: percentiles of too few samples leave the state unchanged. Absent otherwise. */
  readonly ignoresFewSamples?: true;
}

/** CloudWatch's ActionsSuppressedBy: the reason why the actions of a composite alarm are suppressed. */
export type ActionsSuppressedBy = "WaitPeriod" | "ExtensionPeriod" | "Alarm";

/** The suppression of a composite alarm's actions. */
export interface Suppression {
  readonly by: ActionsSuppressedBy;
  /** Epoch milliseconds at which the suppression ends. Null while the suppressor alarm is in ALARM. */
  readonly untilMs: number | null;
  /** The state whose actions ran last. */
  readonly actedState: AlarmState;
}

/** CloudWatch's ActionsSuppressor: an alarm that suppresses the actions of a composite alarm while it is in ALARM. */
export interface Suppressor {
  readonly alarm: string;
  readonly waitMs: number;
  readonly extensionMs: number;
}

export interface CompositeAlarm extends AlarmBase {
  readonly kind: "composite";
  readonly rule: string;
  /** Absent if the alarm has no ActionsSuppressor. */
  readonly suppressor?: Suppressor;
}

export type AlarmDefinition = MetricAlarm | CompositeAlarm;

export interface AlarmStatus {
  readonly state: AlarmState;
  readonly reason: string;
  /** CloudWatch's StateReasonData, as JSON text. Null before the first evaluation. */
  readonly reasonData: string | null;
  readonly updatedMs: number;
  /** Epoch milliseconds of the last change of state. */
  readonly transitionedMs: number;
  /** Present while the actions of a composite alarm are suppressed. */
  readonly suppression?: Suppression;
}

/**
 * An action that a state transition started and that has not finished. It runs again after a restart of the platform.
 */
export interface PendingAction {
  readonly arn: string;
  readonly status: AlarmStatus;
  readonly before: AlarmState;
  readonly atMs: number;
}

export interface AlarmRecord {
  readonly definition: AlarmDefinition;
  readonly status: AlarmStatus;
  /** Actions that have not finished, oldest first, without repeating actions. After a crash the platform runs them at its next start. */
  readonly pendingActions: readonly PendingAction[];
}

export type AlarmHistoryItemType = "ConfigurationUpdate" | "StateUpdate" | "Action";

export interface AlarmHistoryItem {
  readonly atMs: number;
  readonly kind: AlarmHistoryItemType;
  readonly summary: string;
  /** Details as JSON text: CloudWatch's HistoryData. */
  readonly data: string;
}

/** The transition of an alarm to a state, for which actions run. For repeating actions, `before` equals the current state. */
export interface AlarmEvent {
  readonly definition: AlarmDefinition;
  readonly status: AlarmStatus;
  readonly before: AlarmState;
  readonly atMs: number;
}

/** The implementation of an alarm action. AlarmActions, OKActions and InsufficientDataActions name actions by ARN. */
export interface AlarmAction {
  /** True for actions that run once a minute while the alarm stays in the state, as scaling policies do. */
  readonly repeats: boolean;
  /** Rejects if the action fails; the error's message is written to the alarm's history. */
  run(event: AlarmEvent, signal: AbortSignal): Promise<void>;
}

/** Returns the alarm action for an ARN; null if actions of this kind are not implemented. */
export type ResolveAlarmAction = (arn: string) => AlarmAction | null;

/** Reads metric values of a time range. The keys of the result are the start times of periods; the first period starts at `startMs`. */
export type ReadMetricValues = (
  watched: EvaluatedMetric,
  range: { readonly startMs: number; readonly endMs: number },
) => Promise<ReadonlyMap<number, number>>;
