import type { MetricName } from "@galatea/base/metrics";

export const alarmStates = ["OK", "ALARM", "INSUFFICIENT_DATA"] as const;

export type AlarmState = (typeof alarmStates)[number];

/** What stands for a period in which nothing was recorded. */
export type MissingData = "missing" | "ignore" | "breaching" | "notBreaching";

export type ThresholdComparison =
  | "GreaterThanOrEqualToThreshold"
  | "GreaterThanThreshold"
  | "LessThanThreshold"
  | "LessThanOrEqualToThreshold";

/** What an alarm looks at: a metric, or queries as GetMetricData takes them, of which one is returned. */
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
  /** ARNs by the state whose beginning runs them. */
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
  /** Whether DatapointsToAlarm was given, for descriptions. */
  readonly hasDatapointsToAlarm: boolean;
  /** Null: not given, which is `missing`. */
  readonly missing: MissingData | null;
  /** Of a percentile: whether datapoints of too few samples leave the state as it is. Absent where not. */
  readonly ignoresFewSamples?: true;
}

/** Why a composite alarm's actions wait. */
export type SuppressedBy = "WaitPeriod" | "ExtensionPeriod" | "Alarm";

/** What keeps a composite alarm from acting, until when (null: until its suppressor leaves ALARM), and the state whose actions ran last. */
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
  /** Absent where none is, as in records of before there were any. */
  readonly suppressor?: Suppressor;
}

export type AlarmDefinition = MetricAlarm | CompositeAlarm;

export interface AlarmStatus {
  readonly state: AlarmState;
  readonly reason: string;
  /** JSON; null where nothing was evaluated. */
  readonly reasonData: string | null;
  readonly updatedMs: number;
  /** When the state was last another one. */
  readonly transitionedMs: number;
  /** Of a composite alarm whose actions wait. */
  readonly suppression?: Suppression;
}

/** What an alarm has to do for having come into a state, and has not yet been seen to have done. */
export interface OwedAction {
  readonly arn: string;
  readonly status: AlarmStatus;
  readonly before: AlarmState;
  readonly atMs: number;
}

export interface AlarmRecord {
  readonly definition: AlarmDefinition;
  readonly status: AlarmStatus;
  /** Oldest first; what repeats is not among them. A platform that is killed does these in its next run. */
  readonly owed: readonly OwedAction[];
}

export type HistoryKind = "ConfigurationUpdate" | "StateUpdate" | "Action";

export interface HistoryItem {
  readonly atMs: number;
  readonly kind: HistoryKind;
  readonly summary: string;
  /** JSON. */
  readonly data: string;
}

/** An alarm that has come into a state, or, for actions that repeat, is still in it. */
export interface AlarmEvent {
  readonly definition: AlarmDefinition;
  readonly status: AlarmStatus;
  readonly before: AlarmState;
  readonly atMs: number;
}

/** An action that an ARN names. Rejects with what a person can read in the alarm's history. */
export interface AlarmAct {
  /** Whether it runs once a minute for as long as the state lasts, as scaling policies do. */
  readonly repeats: boolean;
  run(event: AlarmEvent, signal: AbortSignal): Promise<void>;
}

/** The action of an ARN; null for what is not built. */
export type AlarmActions = (arn: string) => AlarmAct | null;

/** Values by the start of their period; periods begin at `startMs`. */
export type ReadValues = (
  watched: Watched,
  range: { readonly startMs: number; readonly endMs: number },
) => Promise<ReadonlyMap<number, number>>;
