import assert from "node:assert/strict";
import { test } from "node:test";
import { InMemoryMetricStore } from "@galatea/base/metrics";
import { createAlarmValueReader } from "@galatea/aws";
import { LoadError } from "./load.ts";
import { readTable } from "./series-table.ts";
import { simulateScaling, type SimulationInput } from "./simulate-scaling.ts";
import type { MetricSource } from "./metric-feed.ts";

const minuteMs = 60_000;
const startMs = Date.UTC(2026, 0, 1);

type Row = Readonly<Record<string, number>>;

/** Returns a CSV text with one row per minute. */
function csv(count: number, rowOf: (minute: number) => Row): string {
  const names = Object.keys(rowOf(0));
  const rows = Array.from({ length: count }, (_, minute) =>
    [new Date(startMs + minute * minuteMs).toISOString(), ...names.map((name) => rowOf(minute)[name])].join(","),
  );
  return [`time,${names.join(",")}`, ...rows].join("\n");
}

const stat = (MetricName: string, Stat: string) => ({
  MetricStat: { Metric: { Namespace: "Mine", MetricName, Dimensions: [{ Name: "Queue", Value: "q" }] }, Stat },
  ReturnData: false,
});

const math = (TargetValue: number, Metrics: readonly object[]) => ({
  TargetValue,
  CustomizedMetricSpecification: { Metrics },
});

function asked(policy: object, text: string, more: Partial<MetricSource & { readonly kind: "recorded" }> = {}) {
  const source: MetricSource = {
    kind: "recorded",
    table: readTable(text),
    instanceCount: 1,
    totals: [],
    instanceCounts: [],
    ...more,
  };
  return {
    source,
    policy,
    alarm: null,
    minCapacity: 1,
    maxCapacity: 10,
    startCapacity: 1,
    startupMs: minuteMs,
  } satisfies SimulationInput;
}

const refused = (input: SimulationInput, message: RegExp) =>
  assert.rejects(simulateScaling(input), (error) => error instanceof LoadError && message.test(error.message));

const backlogPerInstance = math(100, [
  { Id: "m1", ...stat("Waiting", "Average") },
  { Id: "m2", ...stat("InService", "Average") },
  { Id: "e1", Expression: "m1 / m2", Label: "Waiting for each", ReturnData: true },
]);

test("a target on backlog per instance scales the variant out and in without a column for instances", async () => {
  const text = csv(90, (minute) => ({ Waiting: minute < 30 ? 400 : 50 }));
  const simulation = await simulateScaling(asked(backlogPerInstance, text, { totals: ["m1"], instanceCounts: ["m2"] }));
  assert.equal(simulation.metricName, "Waiting for each");
  const counts = simulation.minutes.map(({ running }) => running);
  assert.deepEqual([counts[0], counts[20], counts.at(-1)], [1, 4, 1]);
  // A total of 400 over four instances is 100 for each, which is the target.
  assert.deepEqual(simulation.minutes[20], {
    atMs: 20 * minuteMs,
    load: 400,
    metric: 100,
    desired: 4,
    running: 4,
  });
});

test("metrics per instance are redistributed over the instances in service, according to their statistic", async () => {
  const text = csv(60, (minute) => ({ m1: minute < 10 ? 60 : 120, seconds: 0.5, ignored: 7 }));
  const policy = math(30, [
    { Id: "m1", ...stat("Requests", "Sum") },
    { Id: "seconds", ...stat("Latency", "p90") },
    { Id: "e1", Expression: "m1 * seconds", ReturnData: true },
  ]);
  const simulation = await simulateScaling({
    ...asked(policy, text, { instanceCount: 2, totals: ["Latency"] }),
    startCapacity: 2,
  });
  // First, two instances serve 2 x 60 requests a minute, which take half a second each. Then four instances serve 2 x
  // 120.
  assert.equal(simulation.minutes[5]?.metric, 30);
  assert.equal(simulation.minutes[5]?.load, 120);
  assert.deepEqual([simulation.minutes.at(-1)?.metric, simulation.minutes.at(-1)?.running], [30, 4]);
});

test("a sum of a recorded metric does not grow with the number of evaluations", async () => {
  const specification = { PredefinedMetricType: "SageMakerVariantInvocationsPerInstance" };
  const policy = { TargetValue: 600, PredefinedMetricSpecification: specification };
  const simulation = await simulateScaling(
    asked(
      policy,
      csv(10, () => ({ value: 300 })),
    ),
  );
  const changes = simulation.activities.filter(({ notScaled }) => notScaled === null);
  assert.deepEqual([simulation.minutes[5]?.metric, changes], [300, []]);
});

test("minutes without a recorded value are missing data for FILL and for the policy", async () => {
  const text = `time,m1,m2\n${Array.from({ length: 20 }, (_, minute) => `${startMs / 1000 + minute * 60},50,${minute === 0 ? 1 : ""}`).join("\n")}`;
  const policy = (expression: string) =>
    math(1000, [
      { Id: "m1", ...stat("A", "Average") },
      { Id: "m2", ...stat("B", "Average") },
      { Id: "e1", Expression: expression, ReturnData: true },
    ]);
  const totals = ["m1", "m2"];
  const plain = await simulateScaling(asked(policy("m1 + m2"), text, { totals }));
  const filled = await simulateScaling(asked(policy("m1 + FILL(m2, 7)"), text, { totals }));
  const values = ({ minutes }: typeof plain) => [minutes[0]?.metric, minutes[10]?.metric];
  assert.deepEqual(
    [values(plain), values(filled)],
    [
      [51, null],
      [51, 57],
    ],
  );
});

test("property: each minute's metric equals GetMetricData's result for the same series", async () => {
  const valueOf = (minute: number) => ({ m1: 10 + ((minute * 37) % 90), m2: 1 + ((minute * 11) % 7) });
  const metrics = [
    { Id: "m1", ...stat("A", "Sum") },
    { Id: "m2", ...stat("B", "Maximum") },
    { Id: "e1", Expression: "IF(m2 > 3, m1 / m2, m1 * 2)", ReturnData: true },
  ];
  const simulation = await simulateScaling(asked(math(1e6, metrics), csv(60, valueOf), { totals: ["m1", "m2"] }));
  const clock = {
    epochMs: () => startMs + 60 * minuteMs,
    monotonicNs: () => 0,
    timer: () => ({ [Symbol.dispose]() {} }),
  };
  const series = new InMemoryMetricStore({ clock, seriesMax: 10, bytesMax: 1e7 });
  for (let minute = 0; minute < 60; minute++) {
    for (const [metricName, value] of [
      ["A", valueOf(minute).m1],
      ["B", valueOf(minute).m2],
    ] as const) {
      const key = { namespace: "Mine", metricName, dimensions: [{ name: "Queue", value: "q" }], unit: "None" };
      series.record(key, { value, count: 1 }, { timestampMs: startMs + minute * minuteMs, resolutionMs: minuteMs });
    }
  }
  const queries = metrics.map((metric) =>
    "MetricStat" in metric ? { ...metric, MetricStat: { ...metric.MetricStat, Period: 60 } } : metric,
  );
  const expected = await createAlarmValueReader({ series, clock })(
    { kind: "queries", queries, periodMs: minuteMs },
    { startMs, endMs: startMs + 60 * minuteMs },
  );
  for (const { atMs, metric } of simulation.minutes) {
    assert.ok(Math.abs((metric ?? NaN) - (expected.get(startMs + atMs) ?? NaN)) < 1e-9, `${atMs}: ${metric}`);
  }
  assert.equal(simulation.minutes.length, 60);
});

test("a step policy follows an alarm on metric math over five minutes", async () => {
  const policy = {
    AdjustmentType: "ChangeInCapacity",
    StepAdjustments: [{ MetricIntervalLowerBound: 0, ScalingAdjustment: 2 }],
    Cooldown: 600,
  };
  const metric = (Id: string, MetricName: string) => {
    const { MetricStat } = stat(MetricName, "Sum");
    return { Id, MetricStat: { ...MetricStat, Period: 300 }, ReturnData: false };
  };
  const alarm = {
    Metrics: [
      metric("errors", "Errors"),
      metric("all", "All"),
      { Id: "share", Expression: "100 * errors / all", ReturnData: true },
    ],
    EvaluationPeriods: 1,
    Threshold: 5,
    ComparisonOperator: "GreaterThanThreshold",
  };
  // The points are five minutes apart, as GetMetricData returns them. A value applies until the next point.
  const text = csv(60, (minute) => ({ errors: minute < 20 ? 1 : 80, all: 1000 }));
  const simulation = await simulateScaling({ ...asked(policy, text, { totals: ["errors", "all"] }), alarm });
  const [first] = simulation.activities.filter(({ notScaled }) => notScaled === null);
  assert.match(first?.description ?? "", /to 3\./);
  assert.ok((first?.startMs ?? 0) > 21 * minuteMs && (first?.startMs ?? 0) < 27 * minuteMs, `${first?.startMs}`);
  assert.ok(Math.abs((simulation.minutes.at(-1)?.metric ?? 0) - 8) < 1e-9);
});

test("a missing column, an unknown metric and a policy that cannot be replayed are rejected with what to do", async () => {
  const text = csv(5, () => ({ m1: 1, other: 2 }));
  await refused(
    asked(backlogPerInstance, text),
    /no column for m2 \(InService\), Average\. Its columns are m1, other; the policy's metrics are m1, m2\..*ReturnData true/,
  );
  await refused(asked(backlogPerInstance, text, { totals: ["m9"] }), /no metric m9: its metrics are m1, m2/);
  await refused(asked(backlogPerInstance, "time,m1,m2\n1,1,"), /no datapoints of m2/);
  const twice = math(1, [
    { Id: "a", ...stat("Latency", "p90") },
    { Id: "b", ...stat("Latency", "Sum") },
    { Id: "e", Expression: "a + b", ReturnData: true },
  ]);
  await refused(asked(twice, text), /a and b are one metric, Latency/);
  const planned = { kind: "planned", load: { durationMs: minuteMs, at: () => 1 }, metricPerLoad: 1 } as const;
  await refused({ ...asked(backlogPerInstance, text), source: planned }, /a plan is for one metric.*m1, m2.*--series/);
  const single = {
    TargetValue: 1,
    CustomizedMetricSpecification: { Namespace: "Mine", MetricName: "Waiting", Statistic: "Average" },
  };
  await refused(asked(single, text), /no column for Waiting, Average\. Its columns are m1, other/);
});
