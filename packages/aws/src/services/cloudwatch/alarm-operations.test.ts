import assert from "node:assert/strict";
import { test } from "node:test";
import {
  CloudWatchClient,
  DeleteAlarmsCommand,
  DeleteDashboardsCommand,
  DescribeAlarmHistoryCommand,
  DescribeAlarmsCommand,
  DescribeAlarmsForMetricCommand,
  DisableAlarmActionsCommand,
  EnableAlarmActionsCommand,
  GetDashboardCommand,
  ListDashboardsCommand,
  ListTagsForResourceCommand,
  PutCompositeAlarmCommand,
  PutDashboardCommand,
  PutMetricAlarmCommand,
  SetAlarmStateCommand,
  TagResourceCommand,
  UntagResourceCommand,
  type CompositeAlarm,
  type MetricAlarm,
  type PutMetricAlarmCommandInput,
} from "@aws-sdk/client-cloudwatch";
import { alarmLimits, Alarms, type ResolveAlarmAction, type AlarmEvent } from "@galatea/hosting/alarms";
import { silentLogger } from "@galatea/base";
import { eventually } from "@galatea/base/core/eventually-fixture.ts";
import { InMemoryMetricStore, type SeriesKey } from "@galatea/base/metrics";
import { DocumentMemory, MemoryDocuments } from "@galatea/hosting/records";
import type { DocumentChange, Documents } from "@galatea/hosting/records";
import { ManualClock, serveServices } from "../service-fixtures.ts";
import { createAlarmValueReader, cloudwatchService, openDashboardStore } from "./index.ts";

const minute = 60_000;
const dimensions = [{ name: "EndpointName", value: "e" }];
const errors: SeriesKey = { namespace: "AWS/SageMaker", metricName: "Invocation5XXErrors", dimensions, unit: "None" };
const policy = "arn:aws:autoscaling:us-east-1:111122223333:scalingPolicy:x:resource/sagemaker/endpoint/e:policyName/p";
const topic = "arn:aws:sns:us-east-1:111122223333:t";

async function served(documents: Documents = new MemoryDocuments(new DocumentMemory())) {
  const clock = new ManualClock();
  const series = new InMemoryMetricStore({ clock, seriesMax: 2000, bytesMax: 1e7 });
  const acted: AlarmEvent[] = [];
  const repeated: AlarmEvent[] = [];
  const acts: Readonly<Record<string, ReturnType<ResolveAlarmAction>>> = {
    [policy]: { repeats: true, run: (event) => Promise.resolve(void repeated.push(event)) },
    [topic]: {
      repeats: false,
      run(event) {
        acted.push(event);
        return event.status.state === "OK" ? Promise.reject(new Error("no subscriber")) : Promise.resolve();
      },
    },
  };
  const alarmActions: ResolveAlarmAction = (arn) => acts[arn] ?? null;
  const alarms = await Alarms.open({
    documents,
    readValues: createAlarmValueReader({ series, clock }),
    actions: alarmActions,
    limits: alarmLimits,
    clock,
    logger: silentLogger,
  });
  const dashboards = openDashboardStore(documents, silentLogger);
  const gateway = await serveServices([cloudwatchService({ series, clock, alarms, alarmActions, dashboards })]);
  const client = new CloudWatchClient(gateway.client);
  const never = new AbortController().signal;
  return {
    clock,
    series,
    client,
    acted,
    repeated,
    look: () => alarms.evaluateAll(never),
    /** Records one value for each of the next minutes, and advances the clock past them. */
    async minutes(...values: readonly (number | null)[]): Promise<void> {
      for (const value of values) {
        if (value !== null)
          series.record(errors, { value, count: 1 }, { timestampMs: clock.nowMs, resolutionMs: minute });
        clock.nowMs += minute;
        await alarms.evaluateAll(never);
      }
    },
    put: (more: Partial<PutMetricAlarmCommandInput> = {}) =>
      client.send(
        new PutMetricAlarmCommand({
          AlarmName: "errors",
          Namespace: errors.namespace,
          MetricName: errors.metricName,
          Dimensions: [{ Name: "EndpointName", Value: "e" }],
          Statistic: "Sum",
          Period: 60,
          EvaluationPeriods: 3,
          DatapointsToAlarm: 2,
          Threshold: 1,
          ComparisonOperator: "GreaterThanThreshold",
          AlarmActions: [topic],
          OKActions: [topic],
          ...more,
        }),
      ),
    async alarm(name = "errors"): Promise<MetricAlarm> {
      const { MetricAlarms } = await client.send(new DescribeAlarmsCommand({ AlarmNames: [name] }));
      return MetricAlarms?.[0] ?? {};
    },
    async composite(name: string): Promise<CompositeAlarm> {
      const requested = { AlarmNames: [name], AlarmTypes: ["CompositeAlarm" as const] };
      return (await client.send(new DescribeAlarmsCommand(requested))).CompositeAlarms?.[0] ?? {};
    },
    async state(name: string): Promise<string | undefined> {
      const requested = { AlarmNames: [name], AlarmTypes: ["CompositeAlarm" as const, "MetricAlarm" as const] };
      const { MetricAlarms = [], CompositeAlarms = [] } = await client.send(new DescribeAlarmsCommand(requested));
      return [...MetricAlarms, ...CompositeAlarms][0]?.StateValue;
    },
    async history(name = "errors"): Promise<readonly (string | undefined)[]> {
      const requested = { AlarmName: name, ScanBy: "TimestampAscending" as const };
      const { AlarmHistoryItems = [] } = await client.send(new DescribeAlarmHistoryCommand(requested));
      return AlarmHistoryItems.map(({ HistorySummary }) => HistorySummary);
    },
    async [Symbol.asyncDispose]() {
      client.destroy();
      await gateway[Symbol.asyncDispose]();
      await alarms[Symbol.asyncDispose]();
    },
  };
}

test("an alarm changes state with its metric, gives a StateReason, runs its actions once for each change, and records its history", async () => {
  await using at = await served();
  await at.put();
  assert.equal((await at.alarm()).StateReason, "Insufficient Data: 3 datapoints were unknown.");
  await at.minutes(0, 0, 0);
  assert.equal((await at.alarm()).StateValue, "OK");
  await at.minutes(5, 0, 7);
  const alarm = await at.alarm();
  assert.equal(alarm.StateValue, "ALARM");
  assert.match(
    alarm.StateReason ?? "",
    /^Threshold Crossed: 2 out of the last 3 datapoints \[5\.0 \(\d\d\/\d\d\/\d\d \d\d:\d\d:00\), 0\.0 \(.*\), 7\.0 \(.*\)\] were greater than the threshold \(1\.0\) \(minimum 2 datapoints for OK -> ALARM transition\)\.$/,
  );
  assert.deepEqual(
    (JSON.parse(alarm.StateReasonData ?? "") as { recentDatapoints: unknown }).recentDatapoints,
    [5, 0, 7],
  );
  await at.look();
  await at.minutes(0, 0);
  assert.equal((await at.alarm()).StateValue, "OK");
  await eventually(async () => (await at.history()).length >= 6);
  assert.deepEqual(
    at.acted.map(({ before, status }) => [before, status.state]),
    [
      ["INSUFFICIENT_DATA", "OK"],
      ["OK", "ALARM"],
      ["ALARM", "OK"],
    ],
  );
  const reported = await at.history();
  for (const line of [
    'Alarm "errors" created',
    "Alarm updated from INSUFFICIENT_DATA to OK",
    "Alarm updated from OK to ALARM",
    `Successfully executed action ${topic}`,
    "Alarm updated from ALARM to OK",
    `Failed to execute action ${topic}. Received error: "no subscriber"`,
  ])
    assert.ok(reported.includes(line), `${line} in ${JSON.stringify(reported)}`);
});

test("a scaling policy is called once a minute while its alarm stays in ALARM and its actions are enabled", async () => {
  await using at = await served();
  await at.put({ AlarmActions: [policy, topic], OKActions: [] });
  await at.minutes(5, 5, 5);
  await at.look();
  await at.minutes(5);
  assert.deepEqual([at.repeated.length, at.acted.length], [3, 1]);
  await at.client.send(new DisableAlarmActionsCommand({ AlarmNames: ["errors"] }));
  await at.minutes(5);
  assert.equal(at.repeated.length, 3);
  await at.client.send(new EnableAlarmActionsCommand({ AlarmNames: ["errors"] }));
  await at.minutes(5);
  assert.equal(at.repeated.length, 4);
});

test("an alarm on a metric math expression changes state with its result, and reports errors of the expression", async () => {
  await using at = await served();
  const stat = {
    Metric: {
      Namespace: errors.namespace,
      MetricName: errors.metricName,
      Dimensions: [{ Name: "EndpointName", Value: "e" }],
    },
    Period: 60,
    Stat: "Sum",
  };
  const bare = {
    Namespace: undefined,
    MetricName: undefined,
    Dimensions: undefined,
    Statistic: undefined,
    Period: undefined,
  } as const;
  const metrics = (expression: string) => [
    { Id: "m", MetricStat: stat, ReturnData: false },
    { Id: "e", Expression: expression },
  ];
  await at.put({ ...bare, Metrics: metrics("m * 10"), Threshold: 25, AlarmActions: [], OKActions: [] });
  await at.minutes(2, 2, 2);
  assert.equal((await at.alarm()).StateValue, "OK");
  await at.minutes(3, 3);
  assert.equal((await at.alarm()).StateValue, "ALARM");
  await at.put({ ...bare, Metrics: metrics("m * other"), AlarmActions: [], OKActions: [] });
  assert.match((await at.alarm()).StateReason ?? "", /^Evaluation error: .*other/);
});

test("a composite alarm follows the alarms in its rule, and those alarms cannot be deleted while it exists", async () => {
  await using at = await served();
  const composite = (AlarmName: string, AlarmRule: string) =>
    at.client.send(new PutCompositeAlarmCommand({ AlarmName, AlarmRule }));
  await at.put();
  await at.put({ AlarmName: "other", Threshold: 100 });
  await composite("either", "ALARM(errors) OR ALARM(other)");
  await composite("above", 'NOT OK("either")');
  await at.minutes(0, 0, 0);
  assert.deepEqual([await at.state("either"), await at.state("above")], ["OK", "OK"]);
  await at.minutes(5, 5);
  assert.deepEqual([await at.state("either"), await at.state("above")], ["ALARM", "ALARM"]);
  await assert.rejects(composite("either", "ALARM(above)"), {
    name: "ValidationException",
    message: /either depends on itself/,
  });
  await assert.rejects(composite("x", "ALARM(nobody)"), { message: /do not exist: nobody/ });
  await assert.rejects(composite("x", "ALARM(errors) AND"), { message: /cannot be read: unexpected end of the rule/ });
  const remove = (...AlarmNames: string[]) => at.client.send(new DeleteAlarmsCommand({ AlarmNames }));
  await assert.rejects(remove("errors"), {
    name: "ValidationException",
    message: /composite alarm either depends on it/,
  });
  await assert.rejects(remove("errors", "nobody"), { name: "ResourceNotFound" });
  const parents = await at.client.send(
    new DescribeAlarmsCommand({ ParentsOfAlarmName: "errors", AlarmTypes: ["CompositeAlarm"] }),
  );
  assert.deepEqual(
    parents.CompositeAlarms?.map(({ AlarmName }) => AlarmName),
    ["either"],
  );
  await remove("errors", "other", "either", "above");
  assert.deepEqual((await at.client.send(new DescribeAlarmsCommand({}))).MetricAlarms, []);
});

test("alarms keep their state and history after a restart", async () => {
  const memory = new DocumentMemory();
  {
    await using at = await served(new MemoryDocuments(memory));
    await at.put({ AlarmActions: [], OKActions: [] });
    await at.minutes(5, 5, 5);
  }
  await using at = await served(new MemoryDocuments(memory));
  assert.equal((await at.alarm()).StateValue, "ALARM");
  assert.deepEqual(await at.history(), ['Alarm "errors" created', "Alarm updated from INSUFFICIENT_DATA to ALARM"]);
});

test("SetAlarmState runs the actions, and the state lasts until the next evaluation", async () => {
  await using at = await served();
  await at.put();
  await at.minutes(0, 0, 0);
  const reason = { StateValue: "ALARM", StateReason: "drill" } as const;
  await at.client.send(new SetAlarmStateCommand({ AlarmName: "errors", ...reason }));
  const { StateValue, StateReason } = await at.alarm();
  assert.deepEqual({ StateValue, StateReason }, reason);
  await eventually(() => at.acted.length === 2);
  await at.look();
  assert.equal((await at.alarm()).StateValue, "OK");
  await assert.rejects(at.client.send(new SetAlarmStateCommand({ AlarmName: "nobody", ...reason })), {
    name: "ResourceNotFound",
  });
});

test("DescribeAlarms filters by metric, state, prefix and action and returns pages; alarms have tags", async () => {
  await using at = await served();
  for (let number = 0; number < 5; number += 1) await at.put({ AlarmName: `a${number}`, Threshold: number });
  const names: (string | undefined)[] = [];
  for (let NextToken: string | undefined; ;) {
    const page = await at.client.send(new DescribeAlarmsCommand({ AlarmNamePrefix: "a", MaxRecords: 2, NextToken }));
    names.push(...(page.MetricAlarms ?? []).map(({ AlarmName }) => AlarmName));
    if ((NextToken = page.NextToken) === undefined) break;
  }
  assert.deepEqual(names, ["a0", "a1", "a2", "a3", "a4"]);
  await at.minutes(2.5, 2.5, 2.5);
  const inAlarm = await at.client.send(new DescribeAlarmsCommand({ StateValue: "ALARM", ActionPrefix: "arn:aws:sns" }));
  assert.deepEqual(
    inAlarm.MetricAlarms?.map(({ AlarmName }) => AlarmName),
    ["a0", "a1", "a2"],
  );
  const forMetric = async (MetricName: string) =>
    (
      await at.client.send(
        new DescribeAlarmsForMetricCommand({
          Namespace: errors.namespace,
          MetricName,
          Dimensions: [{ Name: "EndpointName", Value: "e" }],
        }),
      )
    ).MetricAlarms?.length;
  assert.deepEqual([await forMetric(errors.metricName), await forMetric("Invocations")], [5, 0]);
  const { AlarmArn: ResourceARN = "" } = await at.alarm("a0");
  await at.client.send(
    new TagResourceCommand({
      ResourceARN,
      Tags: [
        { Key: "k", Value: "v" },
        { Key: "l", Value: "w" },
      ],
    }),
  );
  await at.client.send(new UntagResourceCommand({ ResourceARN, TagKeys: ["l"] }));
  await at.put({ AlarmName: "a0", Threshold: 7 });
  const { Tags } = await at.client.send(new ListTagsForResourceCommand({ ResourceARN }));
  assert.deepEqual(Tags, [{ Key: "k", Value: "v" }]);
});

test("PutMetricAlarm rejects an alarm that cannot be evaluated, with the reason", async () => {
  await using at = await served();
  for (const [more, pattern] of [
    [{ DatapointsToAlarm: 4 }, /DatapointsToAlarm must be less than or equal to EvaluationPeriods/],
    [{ Period: 45 }, /Period must be 10, 20, 30 or a multiple of 60; it is 45/],
    [{ Period: 60, EvaluationPeriods: 2000, DatapointsToAlarm: 1 }, /EvaluationPeriods \* Period must be <= 86400/],
    [{ Statistic: undefined }, /Exactly one of the parameters Statistic and ExtendedStatistic/],
    [{ Statistic: undefined, ExtendedStatistic: "tm90" }, /tm90 for parameter ExtendedStatistic is not supported/],
    [{ TreatMissingData: "never" }, /TreatMissingData must be one of/],
    [{ ComparisonOperator: "GreaterThanUpperThreshold" }, /anomaly detection/],
    [
      { AlarmActions: ["arn:aws:lambda:us-east-1:1:function:f"] },
      /arn:aws:lambda:.* is not supported by this platform/,
    ],
    [{ Metrics: [{ Id: "m", Expression: "1" }] }, /MetricName cannot be used together with Metrics/],
    [{ Threshold: undefined }, /Threshold is required/],
  ] as const)
    await assert.rejects(at.put(more as Partial<PutMetricAlarmCommandInput>), (error: Error) =>
      pattern.test(error.message),
    );
  assert.deepEqual(await at.alarm(), {});
});

test("a dashboard body is returned unchanged, and a body that is not JSON is rejected", async () => {
  await using at = await served();
  const DashboardBody = '{ "widgets": [] }';
  const put = (DashboardName: string, body = DashboardBody) =>
    at.client.send(new PutDashboardCommand({ DashboardName, DashboardBody: body }));
  await put("d");
  await put("e");
  const found = await at.client.send(new GetDashboardCommand({ DashboardName: "d" }));
  assert.deepEqual(
    [found.DashboardBody, found.DashboardArn],
    [DashboardBody, "arn:aws:cloudwatch::111122223333:dashboard/d"],
  );
  const { DashboardEntries } = await at.client.send(new ListDashboardsCommand({}));
  assert.deepEqual(
    DashboardEntries?.map(({ DashboardName, Size }) => [DashboardName, Size]),
    [
      ["d", 17],
      ["e", 17],
    ],
  );
  await assert.rejects(put("f", "[]"), { name: "DashboardInvalidInputError" });
  const remove = (...DashboardNames: string[]) => at.client.send(new DeleteDashboardsCommand({ DashboardNames }));
  await assert.rejects(remove("d", "nobody"), { name: "ResourceNotFound" });
  await remove("d", "e");
  await assert.rejects(at.client.send(new GetDashboardCommand({ DashboardName: "d" })), { name: "ResourceNotFound" });
});

test("while the disk is full, alarms keep their state; the first evaluation afterwards records the change", async () => {
  const documents = new FullDisk();
  await using at = await served(documents);
  await at.put({ AlarmActions: [], OKActions: [] });
  await at.put({ AlarmName: "other", AlarmActions: [], OKActions: [] });
  documents.isFull = true;
  await at.minutes(5, 5, 5);
  assert.deepEqual([await at.state("errors"), await at.state("other")], ["INSUFFICIENT_DATA", "INSUFFICIENT_DATA"]);
  documents.isFull = false;
  await at.look();
  assert.deepEqual([await at.state("errors"), await at.state("other")], ["ALARM", "ALARM"]);
});

class FullDisk extends MemoryDocuments {
  isFull = false;

  override write(changes: readonly DocumentChange[]): Promise<number> {
    return this.isFull ? Promise.reject(new Error("ENOSPC: no space left on device")) : super.write(changes);
  }
}

test("a composite alarm's actions wait for its suppressor; DescribeAlarms and the history give the reason", async () => {
  const memory = new DocumentMemory();
  const periods = { ActionsSuppressorWaitPeriod: 60, ActionsSuppressorExtensionPeriod: 60 };
  const rule = { AlarmName: "main", AlarmRule: "ALARM(errors)", AlarmActions: [topic] };
  const set = (name: string, StateValue: "OK" | "ALARM") =>
    new SetAlarmStateCommand({ AlarmName: name, StateValue, StateReason: "drill" });
  {
    await using at = await served(new MemoryDocuments(memory));
    const put = (more: object) => at.client.send(new PutCompositeAlarmCommand({ ...rule, ...more }));
    await at.put({ AlarmActions: [], OKActions: [], ActionsEnabled: false });
    await at.put({ AlarmName: "upkeep", AlarmActions: [], OKActions: [], Threshold: 1e9 });
    await assert.rejects(
      put({ ActionsSuppressor: "nobody", ...periods }),
      /ActionsSuppressor alarm nobody does not exist/,
    );
    await assert.rejects(put({ ActionsSuppressor: "main", ...periods }), /cannot suppress its own actions/);
    await assert.rejects(put({ ActionsSuppressor: "upkeep" }), /The parameter ActionsSuppressorWaitPeriod is required/);
    await assert.rejects(put({ ActionsSuppressorWaitPeriod: 60 }), /need an ActionsSuppressor/);
    await put({ ActionsSuppressor: "arn:aws:cloudwatch:us-east-1:111122223333:alarm:upkeep", ...periods });
    await assert.rejects(at.client.send(new DeleteAlarmsCommand({ AlarmNames: ["upkeep"] })), /main depends on it/);
    await at.client.send(set("errors", "ALARM"));
    assert.equal((await at.composite("main")).ActionsSuppressedBy, "WaitPeriod");
    await at.client.send(set("upkeep", "ALARM"));
    const { ActionsSuppressedBy, ActionsSuppressedReason, ActionsSuppressor, StateValue } = await at.composite("main");
    assert.deepEqual(
      [ActionsSuppressedBy, ActionsSuppressedReason, ActionsSuppressor, StateValue],
      ["Alarm", "Actions suppressed by Alarm", "upkeep", "ALARM"],
    );
    assert.equal(at.acted.length, 0);
  }
  await using at = await served(new MemoryDocuments(memory));
  await at.client.send(set("upkeep", "OK"));
  assert.equal((await at.composite("main")).ActionsSuppressedBy, "ExtensionPeriod");
  await at.minutes(5, 5, 5);
  await eventually(() => at.acted.length === 1);
  assert.deepEqual([at.acted[0]?.definition.name, at.acted[0]?.status.state], ["main", "ALARM"]);
  assert.equal((await at.composite("main")).ActionsSuppressedBy, undefined);
  const reported = await at.history("main");
  assert(
    reported.includes("Actions suppressed by WaitPeriod") && reported.includes(`Successfully executed action ${topic}`),
    reported.join(),
  );
});

test("the history of a deleted alarm remains for two weeks, across restarts and a new alarm of the same name", async () => {
  const memory = new DocumentMemory();
  {
    await using at = await served(new MemoryDocuments(memory));
    await at.put();
    await at.client.send(new DeleteAlarmsCommand({ AlarmNames: ["errors"] }));
    assert.deepEqual(await at.history(), ['Alarm "errors" created', 'Alarm "errors" deleted']);
  }
  await using at = await served(new MemoryDocuments(memory));
  await at.put();
  assert.deepEqual(await at.history(), ['Alarm "errors" created', 'Alarm "errors" deleted', 'Alarm "errors" created']);
  await at.client.send(new DeleteAlarmsCommand({ AlarmNames: ["errors"] }));
  const all = await at.client.send(new DescribeAlarmHistoryCommand({}));
  assert.equal(all.AlarmHistoryItems?.length, 4);
  at.clock.nowMs += 14 * 24 * 60 * minute + 1;
  await at.look();
  assert.deepEqual(await at.history(), []);
});

test("an alarm on a percentile with EvaluateLowSampleCountPercentile=ignore keeps its state while samples are few", async () => {
  await using at = await served();
  await assert.rejects(at.put({ EvaluateLowSampleCountPercentile: "ignore" }), /is for alarms on a percentile/);
  const percentile = { Statistic: undefined, ExtendedStatistic: "p90", EvaluationPeriods: 1, DatapointsToAlarm: 1 };
  await at.put({ ...percentile, EvaluateLowSampleCountPercentile: "ignore" });
  await at.put({ ...percentile, AlarmName: "eager", EvaluateLowSampleCountPercentile: "evaluate" });
  await at.minutes(5);
  assert.deepEqual([await at.state("errors"), await at.state("eager")], ["INSUFFICIENT_DATA", "ALARM"]);
  at.series.record(errors, { value: 5, count: 99 }, { timestampMs: at.clock.nowMs, resolutionMs: minute });
  await at.minutes(5);
  assert.equal(await at.state("errors"), "ALARM");
  assert.equal((await at.alarm()).EvaluateLowSampleCountPercentile, "ignore");
});
