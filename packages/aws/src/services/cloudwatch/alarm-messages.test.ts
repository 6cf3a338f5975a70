import assert from "node:assert/strict";
import { test } from "node:test";
import type { AlarmEvent, MetricAlarm } from "@galatea/hosting/alarms";
import { alarmSubject, alarmMessageText } from "./alarm-messages.ts";

const alarm: MetricAlarm = {
  kind: "metric",
  name: "busy",
  arn: "arn:aws:cloudwatch:eu-west-1:123456789012:alarm:busy",
  description: "d",
  actionsEnabled: true,
  actions: { OK: [], ALARM: ["arn:aws:sns:eu-west-1:123456789012:t"], INSUFFICIENT_DATA: [] },
  configuredMs: 0,
  tags: [],
  watched: {
    kind: "metric",
    metric: { namespace: "n", metricName: "m", dimensions: [{ name: "EndpointName", value: "e" }] },
    statistic: "Average",
    unit: null,
    periodMs: 60_000,
  },
  threshold: 5,
  comparison: "GreaterThanThreshold",
  evaluationPeriods: 3,
  datapointsToAlarm: 2,
  hasDatapointsToAlarm: true,
  missing: null,
};

function event(definition: AlarmEvent["definition"]): AlarmEvent {
  const status = {
    state: "ALARM",
    reason: "too much",
    reasonData: null,
    updatedMs: 1000,
    transitionedMs: 1000,
  } as const;
  return { definition, status, before: "OK", atMs: 1000 };
}

test("an alarm's notification has CloudWatch's subject and JSON body", () => {
  assert.equal(alarmSubject(event(alarm)), 'ALARM: "busy" in EU (Ireland)');
  assert.deepEqual(JSON.parse(alarmMessageText(event(alarm))), {
    AlarmName: "busy",
    AlarmDescription: "d",
    AWSAccountId: "123456789012",
    AlarmConfigurationUpdatedTimestamp: "1970-01-01T00:00:00.000+0000",
    NewStateValue: "ALARM",
    NewStateReason: "too much",
    StateChangeTime: "1970-01-01T00:00:01.000+0000",
    Region: "EU (Ireland)",
    AlarmArn: alarm.arn,
    OldStateValue: "OK",
    OKActions: [],
    AlarmActions: ["arn:aws:sns:eu-west-1:123456789012:t"],
    InsufficientDataActions: [],
    Trigger: {
      MetricName: "m",
      Namespace: "n",
      StatisticType: "Statistic",
      Statistic: "AVERAGE",
      Unit: null,
      Dimensions: [{ value: "e", name: "EndpointName" }],
      Period: 60,
      EvaluationPeriods: 3,
      DatapointsToAlarm: 2,
      ComparisonOperator: "GreaterThanThreshold",
      Threshold: 5,
      TreatMissingData: "missing",
      EvaluateLowSampleCountPercentile: "",
    },
  });
});

test("notifications of percentile, metric math and composite alarms have CloudWatch's additional members", () => {
  const percentile = { ...alarm, watched: { ...alarm.watched, statistic: "p99" } } as MetricAlarm;
  const queries: MetricAlarm = { ...alarm, watched: { kind: "queries", queries: [{ Id: "q" }], periodMs: 60_000 } };
  const { kind, name, arn, description, actionsEnabled, actions, configuredMs, tags } = alarm;
  void kind;
  const facts = { name: `${name}ä`, arn, description, actionsEnabled, actions, configuredMs, tags };
  const composite = { ...facts, kind: "composite" as const, rule: "ALARM(busy)" };
  const triggers = [percentile, queries].map(
    (each) => (JSON.parse(alarmMessageText(event(each))) as { Trigger: Record<string, unknown> }).Trigger,
  );
  assert.deepEqual(
    [triggers[0]?.["StatisticType"], triggers[0]?.["ExtendedStatistic"], triggers[1]?.["Metrics"]],
    ["ExtendedStatistic", "p99", [{ Id: "q" }]],
  );
  const reported = JSON.parse(alarmMessageText(event(composite))) as Record<string, unknown>;
  assert.deepEqual([reported["AlarmRule"], reported["Trigger"]], ["ALARM(busy)", undefined]);
  // A subject is printable ASCII.
  assert.equal(alarmSubject(event(composite)), 'ALARM: "busy?" in EU (Ireland)');
});
