import assert from "node:assert/strict";
import type { AwsCalls } from "./client.ts";

/** Calls each operation of CloudWatch. */
export async function metrics({ call, wait }: AwsCalls, name: string): Promise<void> {
  const Namespace = `Conversations/${name}`;
  const metric = { Namespace, MetricName: "Waiting", Dimensions: [{ Name: "Queue", Value: "one" }] };
  const { Namespace: _, ...datum } = metric;
  await call("cloudwatch", "PutMetricData", { Namespace, MetricData: [{ ...datum, Value: 3 }] });
  const StatisticValues = { SampleCount: 2, Sum: 10, Minimum: 4, Maximum: 6 };
  await call("cloudwatch", "PutMetricData", { Namespace, MetricData: [{ ...datum, StatisticValues }] });
  const { Metrics: listed } = await call("cloudwatch", "ListMetrics", { Namespace });
  assert.deepEqual(listed, [metric]);
  const now = Date.now();
  const range = { StartTime: new Date(now - 600_000), EndTime: new Date(now + 60_000) };
  const MetricStat = { Metric: metric, Period: 3600, Stat: "Sum" };
  const MetricDataQueries = [
    { Id: "waiting", MetricStat, ReturnData: false },
    { Id: "twice", Expression: "waiting * 2" },
  ];
  const { MetricDataResults: results } = await call("cloudwatch", "GetMetricData", { ...range, MetricDataQueries });
  assert.equal(
    results[0].Values.reduce((a: number, b: number) => a + b),
    26,
  );
  const requested = { ...metric, ...range, Period: 3600, Statistics: ["Maximum", "SampleCount"] };
  const { Datapoints: points } = await call("cloudwatch", "GetMetricStatistics", requested);
  assert.equal(Math.max(...points.map((point: { Maximum: number }) => point.Maximum)), 6);

  const alarm = { AlarmName: name };
  const rule = { Statistic: "Maximum", Period: 60, EvaluationPeriods: 1, Threshold: 5 };
  const compared = { ComparisonOperator: "GreaterThanThreshold", TreatMissingData: "ignore" };
  await call("cloudwatch", "PutMetricAlarm", { ...alarm, ...metric, ...rule, ...compared });
  const composite = { AlarmName: `${name}-both`, AlarmRule: `ALARM("${name}")` };
  await call("cloudwatch", "PutCompositeAlarm", composite);
  const { MetricAlarms: alarms } = await call("cloudwatch", "DescribeAlarms", { AlarmNames: [name] });
  assert.equal(alarms[0].Threshold, 5);
  const { MetricAlarms: watching } = await call("cloudwatch", "DescribeAlarmsForMetric", metric);
  assert.equal(watching[0].AlarmName, name);
  const both = { AlarmNames: [name, composite.AlarmName], AlarmTypes: ["MetricAlarm", "CompositeAlarm"] };
  const described = () => call("cloudwatch", "DescribeAlarms", both);
  assert.equal((await described())["CompositeAlarms"][0].AlarmRule, composite.AlarmRule);
  await call("cloudwatch", "DisableAlarmActions", { AlarmNames: [name] });
  assert.equal((await described())["MetricAlarms"][0].ActionsEnabled, false);
  await call("cloudwatch", "EnableAlarmActions", { AlarmNames: [name] });
  assert.equal((await described())["MetricAlarms"][0].ActionsEnabled, true);
  await call("cloudwatch", "SetAlarmState", { ...alarm, StateValue: "ALARM", StateReason: "set by a client" });
  await wait("cloudwatch", "AlarmExists", { AlarmNames: [name] });
  const { AlarmHistoryItems: history } = await call("cloudwatch", "DescribeAlarmHistory", alarm);
  assert(history.length >= 2, JSON.stringify(history));
  const ResourceARN = alarms[0].AlarmArn;
  await call("cloudwatch", "TagResource", { ResourceARN, Tags: [{ Key: "k", Value: "v" }] });
  assert.deepEqual((await call("cloudwatch", "ListTagsForResource", { ResourceARN }))["Tags"], [
    { Key: "k", Value: "v" },
  ]);
  await call("cloudwatch", "UntagResource", { ResourceARN, TagKeys: ["k"] });
  assert.deepEqual((await call("cloudwatch", "ListTagsForResource", { ResourceARN }))["Tags"], []);
  await call("cloudwatch", "DeleteAlarms", { AlarmNames: [composite.AlarmName] });
  await call("cloudwatch", "DeleteAlarms", { AlarmNames: [name] });
  const { MetricAlarms: metricAlarms, CompositeAlarms: composites } = await described();
  assert.deepEqual([metricAlarms, composites], [[], []]);

  const DashboardBody = JSON.stringify({ widgets: [] });
  await call("cloudwatch", "PutDashboard", { DashboardName: name, DashboardBody });
  assert.equal((await call("cloudwatch", "GetDashboard", { DashboardName: name }))["DashboardBody"], DashboardBody);
  const prefix = { DashboardNamePrefix: name };
  assert.equal((await call("cloudwatch", "ListDashboards", prefix))["DashboardEntries"].length, 1);
  await call("cloudwatch", "DeleteDashboards", { DashboardNames: [name] });
  await assert.rejects(call("cloudwatch", "GetDashboard", { DashboardName: name }), /does not exist/);
}
