/**
 * CloudWatch's alarms: what an alarm is, when it goes off as pure functions, and the book that keeps alarms, looks at their metrics and acts.
 * Nothing here knows AWS's wire or how a metric is computed: who opens the book gives it a reader of values and a table of actions.
 */
export type {
  AlarmAct,
  AlarmActions,
  AlarmDefinition,
  AlarmEvent,
  AlarmFacts,
  AlarmRecord,
  CompositeAlarm,
  ThresholdComparison,
  HistoryItem,
  MetricAlarm,
  MissingData,
  ReadValues,
  Suppressor,
  Watched,
} from "./alarm.ts";
export { Alarms, alarmLimits } from "./alarms.ts";
export { alarmNameOf, alarmsOfRule, parseRule, RuleError } from "./composite-rule.ts";
export { suppressedReason } from "./suppression.ts";
