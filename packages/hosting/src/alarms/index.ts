/**
 * CloudWatch's alarms: their definitions, their evaluation as pure functions, and the `Alarms` that stores them,
 * evaluates their metrics and runs their actions. Nothing here knows AWS's wire or how a metric is computed: the caller
 * of `Alarms.open` passes in a reader of values and a table of actions.
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
