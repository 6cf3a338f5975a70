import assert from "node:assert/strict";
import { test } from "node:test";
import {
  CloudWatchClient,
  GetMetricDataCommand,
  GetMetricStatisticsCommand,
  ListMetricsCommand,
  PutMetricDataCommand,
  type GetMetricStatisticsCommandInput,
  type MetricDataQuery,
} from "@aws-sdk/client-cloudwatch";
import { EventLoopQueue } from "@galatea/base";
import { InMemoryMetricStore, type SeriesKey } from "@galatea/base/metrics";
import { ManualClock, serveServices } from "../service-fixtures.ts";
import { pageToken, type CallContext } from "../../wire/index.ts";
import { cloudwatchService } from "./index.ts";
import { threadCpuMs } from "@galatea/base/core/cpu-time-fixture.ts";

const minute = 60_000;
const dimensions = [
  { name: "EndpointName", value: "e" },
  { name: "VariantName", value: "AllTraffic" },
];
const latency: SeriesKey = { namespace: "AWS/SageMaker", metricName: "ModelLatency", dimensions, unit: "Microseconds" };
const asked = dimensions.map(({ name, value }) => ({ Name: name, Value: value }));

/** Dependencies that no call of these tests uses. */
const unasked = { alarms: null as never, alarmActions: () => null, dashboards: null as never };

async function served() {
  const clock = new ManualClock();
  const series = new InMemoryMetricStore({ clock, seriesMax: 2000, bytesMax: 1e7 });
  const gateway = await serveServices([cloudwatchService({ series, clock, ...unasked })]);
  const client = new CloudWatchClient(gateway.client);
  return {
    clock,
    series,
    client,
    statistics: (more: Partial<GetMetricStatisticsCommandInput> = {}) =>
      client.send(
        new GetMetricStatisticsCommand({
          Namespace: "AWS/SageMaker",
          MetricName: "ModelLatency",
          Dimensions: asked,
          StartTime: new Date(clock.nowMs - 10 * minute),
          EndTime: new Date(clock.nowMs + minute),
          Period: 60,
          Statistics: ["Sum", "Average", "SampleCount", "Minimum", "Maximum"],
          ...more,
        }),
      ),
    data: (MetricDataQueries: MetricDataQuery[], more = {}) =>
      client.send(
        new GetMetricDataCommand({
          MetricDataQueries,
          StartTime: new Date(clock.nowMs - 10 * minute),
          EndTime: new Date(clock.nowMs + minute),
          ...more,
        }),
      ),
    async [Symbol.asyncDispose]() {
      client.destroy();
      await gateway[Symbol.asyncDispose]();
    },
  };
}

test("GetMetricStatistics returns the requested statistics, percentiles and unit for each period", async () => {
  await using at = await served();
  for (let value = 1; value <= 100; value++) at.series.recorder(latency).record(value);
  const reply = await at.statistics({ ExtendedStatistics: ["p99"] });
  assert.equal(reply.Label, "ModelLatency");
  const [point] = reply.Datapoints ?? [];
  const { ExtendedStatistics, ...simple } = point ?? assert.fail("no datapoint");
  assert.deepEqual(simple, {
    Timestamp: new Date(at.clock.nowMs),
    SampleCount: 100,
    Average: 50.5,
    Sum: 5050,
    Minimum: 1,
    Maximum: 100,
    Unit: "Microseconds",
  });
  assert.ok(Math.abs((ExtendedStatistics?.["p99"] ?? 0) - 99) < 1.5);
});

test("a metric is identified by its exact set of dimensions: queries with fewer or more dimensions return nothing", async () => {
  await using at = await served();
  at.series.recorder(latency).record(1);
  const withConfig = [...asked, { Name: "EndpointConfigName", Value: "c" }];
  assert.deepEqual((await at.statistics({ Dimensions: asked.slice(1) })).Datapoints, []);
  assert.deepEqual((await at.statistics({ Dimensions: withConfig })).Datapoints, []);
  assert.equal((await at.statistics({ Dimensions: asked.toReversed() })).Datapoints?.length, 1);
  assert.deepEqual((await at.statistics({ Unit: "Seconds" })).Datapoints, []);
});

test("GetMetricStatistics rejects invalid input with CloudWatch's codes and texts", async () => {
  await using at = await served();
  await assert.rejects(at.statistics({ StartTime: new Date(at.clock.nowMs - 10 * 24 * 60 * minute) }), {
    name: "InvalidParameterCombinationException",
    message:
      "You have requested up to 14,401 datapoints, which exceeds the limit of 1,440. You may reduce the datapoints requested by increasing Period, or decreasing the time range.",
  });
  await assert.rejects(at.statistics({ EndTime: new Date(at.clock.nowMs - 20 * minute) }), {
    name: "InvalidParameterValueException",
    message: "The parameter StartTime must be less than the parameter EndTime.",
  });
  await assert.rejects(at.statistics({ Period: 90 }), { name: "InvalidParameterValueException" });
  await assert.rejects(at.statistics({ Statistics: undefined }), { name: "InvalidParameterCombinationException" });
});

test("PutMetricData stores values, arrays with counts and statistic sets, and stores nothing if one of them is invalid", async () => {
  await using at = await served();
  const put = (MetricData: object[]) =>
    at.client.send(new PutMetricDataCommand({ Namespace: "Mine", MetricData: MetricData as never }));
  await put([
    { MetricName: "m", Value: 1, Unit: "Count" },
    { MetricName: "m", Values: [2, 3], Counts: [1, 2], Unit: "Count" },
    { MetricName: "m", StatisticValues: { SampleCount: 2, Sum: 9, Minimum: 4, Maximum: 5 }, Unit: "Count" },
  ]);
  const reply = await at.statistics({ Namespace: "Mine", MetricName: "m", Dimensions: [] });
  assert.deepEqual(
    [reply.Datapoints?.[0]?.SampleCount, reply.Datapoints?.[0]?.Sum, reply.Datapoints?.[0]?.Maximum],
    [6, 18, 5],
  );
  const late = new Date(at.clock.nowMs + 3 * 60 * minute);
  await assert.rejects(
    put([
      { MetricName: "n", Value: 1 },
      { MetricName: "n", Value: 1, Timestamp: late },
    ]),
    {
      message: "The parameter MetricData.member.2.Timestamp must specify a time no more than two hours in the future.",
    },
  );
  const listed = await at.client.send(new ListMetricsCommand({ Namespace: "Mine" }));
  assert.deepEqual(
    listed.Metrics?.map((metric) => metric.MetricName),
    ["m"],
  );
});

test("PutMetricData rejects invalid and out-of-range values, and too many values or data", async () => {
  await using at = await served();
  const refused = async (data: object[], message: RegExp) => {
    const command = new PutMetricDataCommand({ Namespace: "Mine", MetricData: data as never });
    await assert.rejects(at.client.send(command), message);
  };
  for (const value of [NaN, Infinity, -Infinity, 2 ** 361, -(2 ** 361)]) {
    await refused(
      [{ MetricName: "m", Value: value }],
      /The value -?\S+ for parameter MetricData\.member\.1\.Value is invalid\./,
    );
    await refused([{ MetricName: "m", Values: [1, value] }], /is invalid\./);
  }
  const set = { SampleCount: 1, Sum: 2 ** 361, Minimum: 1, Maximum: 1 };
  await refused([{ MetricName: "m", StatisticValues: set }], /is invalid\./);
  const values = Array.from({ length: 151 }, (_, index) => index);
  await refused([{ MetricName: "m", Values: values }], /must not have a size greater than 150\./);
  const data = Array.from({ length: 1001 }, () => ({ MetricName: "m", Value: 1 }));
  await refused(data, /The collection MetricData must not have a size greater than 1000\./);
  const old = new Date(at.clock.nowMs - 15 * 24 * 60 * minute);
  await refused([{ MetricName: "m", Value: 1, Timestamp: old }], /within the past two weeks\./);
  await at.client.send(
    new PutMetricDataCommand({ Namespace: "Mine", MetricData: [{ MetricName: "m", Value: 2 ** 360 }] }),
  );
});

test("ListMetrics filters by namespace, name and a subset of dimensions, in pages", async () => {
  await using at = await served();
  at.series.recorder(latency).record(1);
  at.series.recorder({ ...latency, unit: "None" }).record(1);
  for (let index = 0; index < 600; index++) {
    at.series.recorder({ ...latency, metricName: `m${String(index).padStart(3, "0")}`, dimensions: [] }).record(1);
  }
  const list = (input: object) => at.client.send(new ListMetricsCommand(input));
  const found = await list({ Dimensions: [{ Name: "VariantName" }] });
  assert.deepEqual(found.Metrics, [{ Namespace: "AWS/SageMaker", MetricName: "ModelLatency", Dimensions: asked }]);
  const first = await list({});
  const second = await list({ NextToken: first.NextToken });
  assert.deepEqual([first.Metrics?.length, second.Metrics?.length, second.NextToken], [500, 101, undefined]);
});

test("GetMetricData returns metrics and expressions in pages, newest values first", async () => {
  await using at = await served();
  const errors = { ...latency, metricName: "Errors", unit: "None" };
  at.clock.nowMs -= 2 * minute;
  for (const [latencyUs, error] of [
    [100, 0],
    [300, 1],
  ] as const) {
    at.series.recorder(latency).record(latencyUs);
    at.series.recorder(errors).record(error);
    at.clock.nowMs += minute;
  }
  const metric = (Id: string, MetricName: string, Stat: string): MetricDataQuery => ({
    Id,
    MetricStat: { Metric: { Namespace: "AWS/SageMaker", MetricName, Dimensions: asked }, Period: 60, Stat },
  });
  const expression = (Id: string, Expression: string): MetricDataQuery => ({ Id, Expression });
  const reply = await at.data([
    metric("m1", "ModelLatency", "Average"),
    { ...metric("m2", "Errors", "Sum"), ReturnData: false },
    expression("milliseconds", "m1 / 1000"),
    expression("both", "SUM(METRICS()) + 2 * (3 - 1)"),
    expression("filled", "FILL(m1, 0) - MAX(m1)"),
    expression("chosen", "IF(m2 > 0, m1, -1)"),
    expression("rate", "RATE(m1)"),
  ]);
  const values = Object.fromEntries((reply.MetricDataResults ?? []).map(({ Id, Values }) => [Id, Values]));
  assert.deepEqual(values["m1"], [300, 100]);
  assert.deepEqual(values["milliseconds"], [0.3, 0.1]);
  assert.deepEqual(values["both"], [305, 104]);
  assert.deepEqual(values["filled"]?.slice(0, 4), [-300, 0, -200, -300]);
  assert.deepEqual(values["chosen"], [300, -1]);
  assert.deepEqual(values["rate"], [200 / 60]);
  assert.deepEqual(Object.keys(values), ["m1", "milliseconds", "both", "filled", "chosen", "rate"]);
  const page = await at.data([metric("m1", "ModelLatency", "p50")], { MaxDatapoints: 1, ScanBy: "TimestampAscending" });
  assert.deepEqual(
    [page.MetricDataResults?.[0]?.StatusCode, page.MetricDataResults?.[0]?.Values?.length],
    ["PartialData", 1],
  );
  const next = await at.data([metric("m1", "ModelLatency", "p50")], {
    MaxDatapoints: 1,
    NextToken: page.NextToken,
    ScanBy: "TimestampAscending",
  });
  assert.deepEqual([next.MetricDataResults?.[0]?.Values, next.NextToken], [[300], undefined]);
});

test("SEARCH returns one labelled series for each matching metric, and functions accept its result", async () => {
  await using at = await served();
  at.clock.nowMs -= minute;
  for (const [endpoint, values] of [
    ["a", [1, 2]],
    ["b", [10]],
  ] as const) {
    const dimensions = [{ name: "EndpointName", value: endpoint }];
    for (const value of values) at.series.recorder({ ...latency, dimensions }).record(value);
  }
  const search = `SEARCH('{AWS/SageMaker,EndpointName} MetricName="ModelLatency"', 'Sum', 60)`;
  const reply = await at.data([
    { Id: "all", Expression: search },
    { Id: "sum", Expression: `SUM(${search})`, Label: "together" },
    { Id: "none", Expression: "SEARCH('nothing like it', 'Sum', 60)" },
  ]);
  assert.deepEqual(
    reply.MetricDataResults?.map(({ Id, Label, Values }) => [Id, Label, Values]),
    [
      ["all", "a ModelLatency", [3]],
      ["all", "b ModelLatency", [10]],
      ["sum", "together", [13]],
    ],
  );
});

test("the error for an invalid, circular, too deeply nested or unsupported expression says what is wrong", async () => {
  await using at = await served();
  for (const [text, reason] of [
    ["SUM(", /it ends too early/],
    ["nobody * 2", /no metric or expression with the id nobody/],
    ["x + 1", /refer to each other in a cycle/],
    ["SEARCH('a', 'b')", /The value b for parameter SEARCH is not supported/],
    ["SEARCH('a (', 'Sum')", /a search has no term at its end/],
    ["DIFF(m1)", /the function DIFF is not supported here/],
    ["constructor(1)", /the function CONSTRUCTOR is not supported here/],
    [`${"(".repeat(40)}1${")".repeat(40)}`, /nested too deeply/],
    ["1 $ 2", /unexpected character at position/],
  ] as const) {
    await assert.rejects(at.data([{ Id: "x", Expression: text }]), reason, text);
  }
});

/** Returns the longest processor time, in milliseconds, that this thread used between two event loop ticks while a promise was pending. */
async function longestTurnMs(work: Promise<unknown>): Promise<number> {
  let [longestMs, beforeMs] = [0, threadCpuMs()];
  const over = new AbortController();
  const nextTick = () => {
    longestMs = Math.max(longestMs, threadCpuMs() - beforeMs);
    beforeMs = threadCpuMs();
    if (!over.signal.aborted) setImmediate(nextTick);
  };
  setImmediate(nextTick);
  await work.finally(() => over.abort());
  return longestMs;
}

test("200 expressions over 200 metrics never block the event loop for 500 ms", async () => {
  await using fixture = await served();
  const { series, clock } = fixture;
  for (let metric = 0; metric < 200; metric += 1) {
    const key: SeriesKey = { ...latency, metricName: `m${metric}` };
    for (let index = 0; index < 100; index += 1) {
      const timestampMs = clock.nowMs - index * minute;
      series.record(key, { value: index, count: 1 }, { timestampMs, resolutionMs: minute });
    }
  }
  const range = { StartTime: new Date(clock.nowMs - 100 * minute), EndTime: new Date(clock.nowMs + minute) };
  const metrics = Array.from({ length: 200 }, (_, index) => ({
    Id: `m${index}`,
    ReturnData: false,
    MetricStat: {
      Metric: { Namespace: latency.namespace, MetricName: `m${index}`, Dimensions: asked },
      Period: 60,
      Stat: "Sum",
    },
  }));
  const expressions = Array.from({ length: 200 }, (_, index) => ({
    Id: `e${index}`,
    Expression: `SUM(METRICS()) + ${index}`,
  }));
  const pending = fixture.data([...metrics, ...expressions], range);
  const turnMs = await longestTurnMs(pending);
  const { MetricDataResults: results = [] } = await pending;
  assert.equal(results.length, 200);
  assert.equal(results[7]?.Values?.[0], 7);
  assert.equal(results[7]?.Values?.[1], 207);
  assert.ok(turnMs < 500, `the event loop was blocked for ${turnMs} ms`);
});

test("an expression that would compute too many values is rejected with advice", async () => {
  await using fixture = await served();
  const nested = Array.from({ length: 90 }, (_, index) => ({ Id: `e${index}`, Expression: "FILL(m, 0)", Period: 60 }));
  const metric = {
    Metric: { Namespace: latency.namespace, MetricName: "m", Dimensions: asked },
    Period: 60,
    Stat: "Sum",
  };
  await assert.rejects(
    fixture.data([{ Id: "m", MetricStat: metric }, ...nested], {
      StartTime: new Date(fixture.clock.nowMs - 70_000 * minute),
    }),
    /may compute 5000000 values. Increase Period or decrease the time range/,
  );
});

test("ListMetrics of 100,000 metrics returns ordered pages and yields to the event loop at least 90 times", async () => {
  const clock = new ManualClock();
  const series = new InMemoryMetricStore({ clock, seriesMax: 200_000, bytesMax: 1e9 });
  const count = 100_000;
  // Recorded out of order: each number once, because 7919 and the count have no common divisor.
  for (let at = 0; at < count; at += 1) {
    const value = String((at * 7919) % count).padStart(6, "0");
    const key = { namespace: "n", metricName: "m", dimensions: [{ name: "d", value }], unit: "None" };
    series.record(key, { value: 1, count: 1 }, { timestampMs: clock.nowMs, resolutionMs: minute });
  }
  const loopQueue = new EventLoopQueue();
  const never = new AbortController().signal;
  const { handle } = cloudwatchService({ series, clock, ...unasked }).operations.ListMetrics;
  const list = (input: Parameters<typeof handle>[0]) =>
    handle(input, { nextTick: () => loopQueue.next(never) } as CallContext);
  const valuesOf = ({ Metrics }: Awaited<ReturnType<typeof list>>) =>
    Metrics?.map((each) => each.Dimensions?.[0]?.Value);
  const others = { turns: 0, areThere: true };
  const takeTurn = () => {
    others.turns += 1;
    if (others.areThere) setImmediate(takeTurn);
  };
  takeTurn();
  const page = await list({});
  others.areThere = false;
  assert.ok(others.turns >= 90, `the event loop had ${others.turns} other ticks`);
  const numbered = (from: number) => Array.from({ length: 500 }, (_, at) => String(from + at).padStart(6, "0"));
  assert.deepEqual(valuesOf(page), numbered(0));
  assert.deepEqual(valuesOf(await list({ NextToken: page.NextToken ?? "" })), numbered(500));
  const last = await list({
    NextToken: pageToken({ operation: "ListMetrics", input: {} }, '["n","m",[["d","099499"]]]'),
  });
  assert.deepEqual([valuesOf(last), last.NextToken], [numbered(99_500), undefined]);
});

test("PutMetricData records at most 100 data in each event loop tick, and none if one is invalid, including data of entities", async () => {
  const clock = new ManualClock();
  const series = new InMemoryMetricStore({ clock, seriesMax: 1000, bytesMax: 1e8 });
  const { handle } = cloudwatchService({ series, clock, ...unasked }).operations.PutMetricData;
  let recorded = 0;
  let most = 0;
  const metricCount = async () => {
    const filter = { namespace: "n", metricName: null, dimensions: [], recordedSinceMs: null };
    return (await Array.fromAsync(series.list(filter))).flat().length;
  };
  const look = async () => {
    const found = await metricCount();
    most = Math.max(most, found - recorded);
    recorded = found;
  };
  const data = Array.from({ length: 250 }, (_, at) => ({ MetricName: `m${at}`, Values: [1, 2], Counts: [1, 3] }));
  const wrong = { MetricName: "wrong", Values: [1], Counts: [] };
  const put = (input: Omit<Parameters<typeof handle>[0], "Namespace">) =>
    handle({ Namespace: "n", ...input }, { nextTick: look } as CallContext);
  await assert.rejects(put({ MetricData: data, EntityMetricData: [{ MetricData: [wrong] }] }), {
    message: /^The parameters EntityMetricData\.member\.1\.MetricData\.member\.1\.Values and /,
  });
  assert.equal(await metricCount(), 0);
  await put({ MetricData: data, EntityMetricData: [{ MetricData: [{ MetricName: "entity", Value: 7 }] }] });
  await look();
  assert.deepEqual([await metricCount(), most], [251, 100]);
  const name = { namespace: "n", metricName: "m249", dimensions: [] };
  const query = { startMs: clock.nowMs, endMs: clock.nowMs + 1, periodMs: minute, unit: null };
  const [point] = await series.query(name, query);
  assert.deepEqual([point?.sampleCount, point?.sum], [4, 7]);
});
