import { unreachable } from "@galatea/base";
import type {
  AlarmAction,
  ResolveAlarmAction,
  AlarmEvent,
  MetricAlarm,
  EvaluatedMetric,
} from "@galatea/hosting/alarms";
import type { Topics } from "../../topics/index.ts";

/** CloudWatch's names of regions in messages. A region without a name is shown by its code. */
const regionNames: Readonly<Record<string, string>> = {
  "us-east-1": "US East (N. Virginia)",
  "us-east-2": "US East (Ohio)",
  "us-west-1": "US West (N. California)",
  "us-west-2": "US West (Oregon)",
  "eu-west-1": "EU (Ireland)",
  "eu-west-2": "EU (London)",
  "eu-central-1": "EU (Frankfurt)",
  "ap-northeast-1": "Asia Pacific (Tokyo)",
  "ap-southeast-1": "Asia Pacific (Singapore)",
  "ap-southeast-2": "Asia Pacific (Sydney)",
};

const subjectCharsMax = 100;

const topicArn = /^arn:aws:sns:[a-z0-9-]*:\d{12}:[A-Za-z0-9_-]{1,256}(?:\.fifo)?$/;

/**
 * Creates the alarm actions that publish to SNS topics. An alarm publishes one message when it enters the action's
 * state.
 */
export function createTopicActions(topics: () => Promise<Topics>): ResolveAlarmAction {
  return (arn): AlarmAction | null => {
    if (!topicArn.test(arn)) return null;
    return {
      repeats: false,
      async run(event) {
        const message = { topicArn: arn, subject: alarmSubject(event), text: alarmMessageText(event), attributes: {} };
        await (await topics()).publish(message);
      },
    };
  };
}

const regionOf = ({ definition }: AlarmEvent) => {
  const code = definition.arn.split(":")[3] ?? "";
  return regionNames[code] ?? code;
};

export function alarmSubject(event: AlarmEvent): string {
  const { definition, status } = event;
  return `${status.state}: "${definition.name}" in ${regionOf(event)}`
    .replace(/[^\x20-\x7e]/g, "?")
    .slice(0, subjectCharsMax);
}

/** Returns CloudWatch's JSON message for an event. */
export function alarmMessageText(event: AlarmEvent): string {
  const { definition, status, before } = event;
  const common = {
    AlarmName: definition.name,
    AlarmDescription: definition.description,
    AWSAccountId: definition.arn.split(":")[4] ?? "",
    AlarmConfigurationUpdatedTimestamp: timeOf(definition.configuredMs),
    NewStateValue: status.state,
    NewStateReason: status.reason,
    StateChangeTime: timeOf(status.transitionedMs),
    Region: regionOf(event),
    AlarmArn: definition.arn,
    OldStateValue: before,
    OKActions: definition.actions.OK,
    AlarmActions: definition.actions.ALARM,
    InsufficientDataActions: definition.actions.INSUFFICIENT_DATA,
  };
  switch (definition.kind) {
    case "composite":
      return JSON.stringify({ ...common, AlarmRule: definition.rule });
    case "metric":
      return JSON.stringify({ ...common, Trigger: triggerOf(definition) });
    default:
      return unreachable(definition);
  }
}

const timeOf = (ms: number) => new Date(ms).toISOString().replace("Z", "+0000");

function triggerOf(alarm: MetricAlarm): object {
  const { watched, evaluationPeriods, datapointsToAlarm, hasDatapointsToAlarm, comparison, threshold, missing } = alarm;
  return {
    ...watchedOf(watched),
    Period: watched.periodMs / 1000,
    EvaluationPeriods: evaluationPeriods,
    ...(hasDatapointsToAlarm ? { DatapointsToAlarm: datapointsToAlarm } : {}),
    ComparisonOperator: comparison,
    Threshold: threshold,
    TreatMissingData: missing ?? "missing",
    EvaluateLowSampleCountPercentile: "",
  };
}

const statisticWords: Readonly<Record<string, string>> = {
  Average: "AVERAGE",
  Sum: "SUM",
  Minimum: "MINIMUM",
  Maximum: "MAXIMUM",
  SampleCount: "SAMPLE_COUNT",
};

function watchedOf(watched: EvaluatedMetric): object {
  if (watched.kind === "queries") return { Metrics: watched.queries };
  const { metric, statistic, unit } = watched;
  const word = statisticWords[statistic];
  return {
    MetricName: metric.metricName,
    Namespace: metric.namespace,
    ...(word === undefined
      ? { StatisticType: "ExtendedStatistic", ExtendedStatistic: statistic }
      : { StatisticType: "Statistic", Statistic: word }),
    Unit: unit,
    Dimensions: metric.dimensions.map(({ name, value }) => ({ value, name })),
  };
}
