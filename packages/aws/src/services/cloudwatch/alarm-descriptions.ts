import { unreachable } from "@galatea/base";
import {
  suppressedReason,
  type AlarmDefinition,
  type AlarmRecord,
  type CompositeAlarm,
  type AlarmHistoryItem,
  type MetricAlarm,
} from "@galatea/hosting/alarms";
import type { CloudwatchInputs } from "../../spec/gen/cloudwatch.ts";

/** Returns the output of DescribeAlarms for a metric alarm. */
export function describeMetricAlarm(definition: MetricAlarm, record: AlarmRecord) {
  return {
    ...printFacts(record),
    ...printWatched(definition),
    EvaluationPeriods: definition.evaluationPeriods,
    DatapointsToAlarm: definition.hasDatapointsToAlarm ? definition.datapointsToAlarm : undefined,
    Threshold: definition.threshold,
    ComparisonOperator: definition.comparison,
    TreatMissingData: definition.missing ?? undefined,
    EvaluateLowSampleCountPercentile: definition.ignoresFewSamples === true ? "ignore" : undefined,
  };
}

export function describeCompositeAlarm({ rule, suppressor }: CompositeAlarm, record: AlarmRecord) {
  const { suppression } = record.status;
  return {
    ...printFacts(record),
    AlarmRule: rule,
    ActionsSuppressor: suppressor?.alarm,
    ActionsSuppressorWaitPeriod: suppressor === undefined ? undefined : suppressor.waitMs / 1000,
    ActionsSuppressorExtensionPeriod: suppressor === undefined ? undefined : suppressor.extensionMs / 1000,
    ActionsSuppressedBy: suppression?.by,
    ActionsSuppressedReason: suppression === undefined ? undefined : suppressedReason(suppression.by),
  };
}

export function describeHistoryItem(definition: Pick<AlarmDefinition, "name" | "kind">, item: AlarmHistoryItem) {
  return {
    AlarmName: definition.name,
    AlarmType: alarmType(definition),
    Timestamp: new Date(item.atMs),
    HistoryItemType: item.kind,
    HistorySummary: item.summary,
    HistoryData: item.data,
  };
}

export function alarmType({ kind }: Pick<AlarmDefinition, "kind">): "MetricAlarm" | "CompositeAlarm" {
  switch (kind) {
    case "metric":
      return "MetricAlarm";
    case "composite":
      return "CompositeAlarm";
    default:
      return unreachable(kind);
  }
}

function printFacts({ definition, status }: AlarmRecord) {
  return {
    AlarmName: definition.name,
    AlarmArn: definition.arn,
    AlarmDescription: definition.description ?? undefined,
    AlarmConfigurationUpdatedTimestamp: new Date(definition.configuredMs),
    ActionsEnabled: definition.actionsEnabled,
    OKActions: definition.actions.OK,
    AlarmActions: definition.actions.ALARM,
    InsufficientDataActions: definition.actions.INSUFFICIENT_DATA,
    StateValue: status.state,
    StateReason: status.reason,
    StateReasonData: status.reasonData ?? undefined,
    StateUpdatedTimestamp: new Date(status.updatedMs),
    StateTransitionedTimestamp: new Date(status.transitionedMs),
  };
}

function printWatched({ watched }: MetricAlarm) {
  if (watched.kind === "queries") {
    const queries = watched.queries as readonly CloudwatchInputs["MetricDataQuery"][];
    return { Dimensions: [], Metrics: queries.map((query) => ({ ReturnData: true, ...query })) };
  }
  const { metric, statistic, unit, periodMs } = watched;
  const isPercentile = statistic.startsWith("p");
  return {
    Namespace: metric.namespace,
    MetricName: metric.metricName,
    Dimensions: metric.dimensions.map(({ name, value }) => ({ Name: name, Value: value })),
    Statistic: isPercentile ? undefined : statistic,
    ExtendedStatistic: isPercentile ? statistic : undefined,
    Unit: unit ?? undefined,
    Period: periodMs / 1000,
  };
}
