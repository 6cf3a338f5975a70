import type { MetricName } from "@galatea/base/metrics";

export const alarmStates = ["OK", "ALARM", "INSUFFICIENT_DATA"] as const;

export type AlarmState = (typeof alarmStates)[number];

/** The treatment of a period without recorded values. */
export type MissingData = "missing" | "ignore" | "breaching" | "notBreaching";

export type ThresholdComparison =
  | "GreaterThanOrEqualToThreshold"
  | "GreaterThanThreshold"
  | "LessThanThreshold"
  | "LessThanOrEqualToThreshold";

/** The metric that an alarm evaluates, or queries as GetMetricData takes them, one of which is returned. */
export type Watched =
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

export interface AlarmFacts {
  readonly name: string;
  readonly arn: string;
  readonly description: string | null;
  readonly actionsEnabled: boolean;
  /** ARNs of the actions that run when the alarm enters the state. */
  readonly actions: Readonly<Record<AlarmState, readonly string[]>>;
  readonly configuredMs: number;
  readonly tags: readonly AlarmTag[];
}

export interface MetricAlarm extends AlarmFacts {
  readonly kind: "metric";
  readonly watched: Watched;
  readonly threshold: number;
  readonly comparison: ThresholdComparison;
  readonly evaluationPeriods: number;
  readonly datapointsToAlarm: number;
  /** True where the request had DatapointsToAlarm, which Describe then returns. */
  readonly hasDatapointsToAlarm: boolean;
  /** Null: not in the request, which means `missing`. */
  readonly missing: MissingData | null;
  /** For alarms on percentiles: true if datapoints with too few samples leave the state unchanged. Absent otherwise. */
  readonly ignoresFewSamples?: true;
}

/** The reason that a composite alarm's actions are suppressed. */
export type SuppressedBy = "WaitPeriod" | "ExtensionPeriod" | "Alarm";

/**
 * The suppression of a composite alarm's actions: its reason, its end (null: when the suppressor leaves ALARM), and the
 * state whose actions ran last.
 */
export interface Suppression {
  readonly by: SuppressedBy;
  readonly untilMs: number | null;
  readonly actedState: AlarmState;
}

export interface Suppressor {
  readonly alarm: string;
  readonly waitMs: number;
  readonly extensionMs: number;
}

export interface CompositeAlarm extends AlarmFacts {
  readonly kind: "composite";
  readonly rule: string;
  /** Absent without a suppressor. */
  readonly suppressor?: Suppressor;
}

export type AlarmDefinition = MetricAlarm | CompositeAlarm;

export interface AlarmStatus {
  readonly state: AlarmState;
  readonly reason: string;
  /** JSON; null before the first evaluation. */
  readonly reasonData: string | null;
  readonly updatedMs: number;
  /** Time of the last change of state. */
  readonly transitionedMs: number;
  /** Only for a composite alarm whose actions are suppressed. */
  readonly suppression?: Suppression;
}

/** An action of an alarm's new state that is not recorded as done. */
export interface PendingAction {
  readonly arn: string;
  readonly status: AlarmStatus;
  readonly before: AlarmState;
  readonly atMs: number;
}

export interface AlarmRecord {
  readonly definition: AlarmDefinition;
  readonly status: AlarmStatus;
  /** Oldest first, without repeating actions. After a crash the platform runs these at its next start. */
  readonly pendingActions: readonly PendingAction[];
}

export type HistoryKind = "ConfigurationUpdate" | "StateUpdate" | "Action";

export interface HistoryItem {
  readonly atMs: number;
  readonly kind: HistoryKind;
  readonly summary: string;
  /** JSON. */
  readonly data: string;
}

/** An alarm that has entered a state, or, for actions that repeat, is still in it. */
export interface AlarmEvent {
  readonly definition: AlarmDefinition;
  readonly status: AlarmStatus;
  readonly before: AlarmState;
  readonly atMs: number;
}

/** The action that an ARN names. Rejects with a text for the alarm's history. */
export interface AlarmAct {
  /** True for actions that run once a minute while the state lasts, as scaling policies do. */
  readonly repeats: boolean;
  run(event: AlarmEvent, signal: AbortSignal): Promise<void>;
}

/** Returns the action of an ARN; null where it is not implemented. */
export type AlarmActions = (arn: string) => AlarmAct | null;

/** Returns values by the start of their period; periods begin at `startMs`. */
export type ReadValues = (
  watched: Watched,
  range: { readonly startMs: number; readonly endMs: number },
) => Promise<ReadonlyMap<number, number>>;
