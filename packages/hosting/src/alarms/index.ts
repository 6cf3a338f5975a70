/**
 * CloudWatch's alarms: their definitions, their evaluation as pure functions, and the class `Alarms`, which stores alarms,
 * evaluates their metrics and runs their actions. This module contains neither AWS's wire format nor the computation of
 * metrics: the caller of `Alarms.open` passes a function that reads metric values and one that resolves actions.
 */
export type {
  AlarmAction,
  ResolveAlarmAction,
  AlarmDefinition,
  AlarmEvent,
  AlarmBase,
  AlarmRecord,
  CompositeAlarm,
  ThresholdComparison,
  AlarmHistoryItem,
  MetricAlarm,
  MissingDataTreatment,
  ReadMetricValues,
  Suppressor,
  EvaluatedMetric,
} from "./alarm.ts";
export { Alarms, alarmLimits } from "./alarms.ts";
export { alarmNameFromArn, alarmNamesInRule, parseAlarmRule, AlarmRuleError } from "./composite-rule.ts";
export { suppressedReason } from "./suppression.ts";
