import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import * as fc from "fast-check";
import {
  LoadError,
  parsePlan,
  readTable,
  simulateScaling,
  chartText,
  type SimulationInput,
} from "@galatea/tools/simulation";

const main = fileURLToPath(new URL("../src/main.ts", import.meta.url));
const predefined = {
  PredefinedMetricSpecification: { PredefinedMetricType: "SageMakerVariantInvocationsPerInstance" },
};

function asked(plan: string, policy: object, more: Partial<SimulationInput> = {}): SimulationInput {
  return {
    source: { kind: "planned", load: parsePlan(plan), metricPerLoad: 1 },
    policy,
    alarm: null,
    minCapacity: 1,
    maxCapacity: 10,
    startCapacity: 1,
    startupMs: 60_000,
    ...more,
  };
}

const changesOf = ({ activities }: Awaited<ReturnType<typeof simulateScaling>>) =>
  activities
    .filter(({ notScaled }) => notScaled === null)
    .map(({ startMs, description }) => [Math.floor(startMs / 60_000), Number(/\d+/.exec(description)?.[0])]);

test("a load plan that ends while instances start or end is simulated to its end", async () => {
  const policy = { TargetValue: 300, ...predefined, ScaleOutCooldown: 60, ScaleInCooldown: 120 };
  const simulation = await simulateScaling(asked("0-5m:4rps,5m-15m:20rps,15m-30m:2rps", policy, { maxCapacity: 4 }));
  assert.deepEqual(changesOf(simulation), [
    [8, 4],
    [30, 1],
  ]);
});

test("under a growing and shrinking load the simulation scales out as needed, and in after fifteen minutes of low load", async () => {
  const policy = { TargetValue: 600, ...predefined, ScaleInCooldown: 300, ScaleOutCooldown: 60 };
  const simulation = await simulateScaling(asked("0-5m:5rps,5m-20m:50rps,20m-1h:5rps", policy));
  assert.deepEqual(changesOf(simulation), [
    [8, 5],
    [35, 1],
  ]);
  const counts = simulation.minutes.map(({ running }) => running);
  assert.deepEqual([counts[0], counts[12], counts.at(-1)], [1, 5, 1]);
  assert.equal(simulation.minutes[12]?.metric, 600);
});

test("a customized metric is simulated from a recorded series that several instances shared", async () => {
  const lines = Array.from({ length: 40 }, (_, index) => `${1_700_000_000 + index * 60},${index < 10 ? 20 : 75}`);
  const table = readTable(["time,value", ...lines].join("\n"));
  const dimensions = [{ Name: "EndpointName", Value: "e" }];
  const metric = { Namespace: "/aws/sagemaker/Endpoints", MetricName: "GPUUtilization", Statistic: "Average" };
  const specification = { CustomizedMetricSpecification: { ...metric, Dimensions: dimensions, Unit: "Percent" } };
  const policy = { TargetValue: 60, ...specification };
  const simulation = await simulateScaling({
    ...asked("0-1m:1rps", policy),
    source: { kind: "recorded", table, instanceCount: 2, totals: [], instanceCounts: [] },
    startCapacity: 2,
  });
  assert.equal(simulation.metricName, "GPUUtilization");
  assert.equal(simulation.minutes[12]?.metric, 75);
  // 2 x 75 % are 150 % in all: three instances at 50 %.
  assert.deepEqual(changesOf(simulation), [[13, 3]]);
  assert.equal(simulation.minutes.at(-1)?.metric, 50);
});

test("a metric in points of ten seconds scales out within a minute, and in after a quarter of an hour", async () => {
  const type = "SageMakerVariantConcurrentRequestsPerModelHighResolution";
  const policy = { TargetValue: 5, PredefinedMetricSpecification: { PredefinedMetricType: type } };
  // 0.2 s a request: 100 of them a second are 20 at a time.
  const load = parsePlan("0-5m:10rps,5m-30m:100rps,30m-1h:10rps");
  const source = { kind: "planned", load, metricPerLoad: 0.2 } as const;
  const simulation = await simulateScaling(asked("0-1m:1rps", policy, { source, startupMs: 20_000 }));
  assert.equal(simulation.metricName, "ConcurrentRequestsPerModel");
  const [out, back, ...more] = simulation.activities.filter(({ notScaled }) => notScaled === null);
  assert.deepEqual(
    [out?.description, back?.description, more],
    ["Setting desired instance count to 4.", "Setting desired instance count to 1.", []],
  );
  const after = ((out?.startMs ?? 0) - 5 * 60_000) / 1000;
  assert.ok(after >= 30 && after < 60, `out after ${after} s`);
  assert.ok((back?.startMs ?? 0) >= 45 * 60_000, `in at ${back?.startMs}`);
});

test("a step policy is simulated with its alarm, and without", async () => {
  const policy = {
    AdjustmentType: "ChangeInCapacity",
    StepAdjustments: [{ MetricIntervalLowerBound: 0, ScalingAdjustment: 2 }],
    Cooldown: 600,
  };
  const alarm = {
    Namespace: "mine",
    MetricName: "Waiting",
    Statistic: "Average",
    Period: 60,
    EvaluationPeriods: 2,
    Threshold: 30,
    ComparisonOperator: "GreaterThanThreshold",
  };
  const simulation = await simulateScaling(asked("0-5m:10rps,5m-30m:100rps", policy, { alarm }));
  assert.deepEqual(changesOf(simulation)[0], [7, 3]);
  await assert.rejects(simulateScaling(asked("0-5m:10rps", policy)), { message: /needs the alarm that runs it/ });
});

test("property: for any load instances stay within their limits, cooldowns hold, and a constant load ends in a constant count", async () => {
  const part = fc.record({ minutes: fc.integer({ min: 1, max: 30 }), rate: fc.integer({ min: 0, max: 200 }) });
  const arbitrary = fc.record({
    parts: fc.array(part, { minLength: 1, maxLength: 5 }),
    lastRate: fc.integer({ min: 1, max: 100 }),
    target: fc.integer({ min: 60, max: 2000 }),
    minCapacity: fc.integer({ min: 1, max: 4 }),
    more: fc.integer({ min: 0, max: 12 }),
    inSeconds: fc.constantFrom(0, 120, 600),
    outSeconds: fc.constantFrom(0, 120, 600),
    startupSeconds: fc.constantFrom(0, 30, 200),
  });
  await fc.assert(
    fc.asyncProperty(arbitrary, async (input) => {
      let at = 0;
      const plan = [...input.parts, { minutes: 90, rate: input.lastRate }].map(({ minutes, rate }) => {
        at += minutes;
        return `${at - minutes}m-${at}m:${rate}rps`;
      });
      const policy = {
        TargetValue: input.target,
        ...predefined,
        ScaleInCooldown: input.inSeconds,
        ScaleOutCooldown: input.outSeconds,
      };
      const maxCapacity = input.minCapacity + input.more;
      const bounds = { minCapacity: input.minCapacity, maxCapacity, startCapacity: input.minCapacity };
      const more = { ...bounds, startupMs: input.startupSeconds * 1000 };
      const simulation = await simulateScaling(asked(plan.join(","), policy, more));
      for (const { desired, running } of simulation.minutes) {
        assert.ok(desired >= input.minCapacity && desired <= maxCapacity, `${desired}`);
        assert.ok(running >= input.minCapacity && running <= maxCapacity, `${running}`);
      }
      const changes = simulation.activities.filter(({ notScaled }) => notScaled === null);
      const counts = changes.map(({ description }) => Number(/\d+/.exec(description)?.[0]));
      for (const [index, { startMs }] of changes.entries()) {
        const before = changes[index - 1];
        const from = counts[index - 1] ?? input.minCapacity;
        if (before === undefined || (counts[index] ?? 0) > from) continue;
        const wasOut = from > (counts[index - 2] ?? input.minCapacity);
        const cooldownMs = (wasOut ? input.outSeconds : input.inSeconds) * 1000;
        assert.ok(startMs - before.startMs >= cooldownMs, `in after ${startMs - before.startMs} ms`);
      }
      const needed = Math.ceil((input.lastRate * 60) / input.target - 1e-9);
      const settled = Math.min(maxCapacity, Math.max(input.minCapacity, needed));
      const last = simulation.minutes.slice(-20).map(({ running }) => running);
      assert.ok(
        last.every((count) => count === last[0]),
        `a steady load flaps: ${last.join(" ")}`,
      );
      // Between nine tenths of the target and the target nothing moves.
      assert.ok((last[0] ?? 0) >= settled, `${last[0]} instances, and ${settled} are needed`);
    }),
    { numRuns: 25 },
  );
});

test("invalid plans and series are rejected with the reason", () => {
  const refused = (read: () => unknown, message: RegExp) =>
    assert.throws(read, (error) => error instanceof LoadError && message.test(error.message));
  refused(() => parsePlan("soon"), /'soon' is not like 5m-20m:200rps/);
  refused(() => parsePlan("5m-1m:1rps"), /ends before it begins/);
  refused(() => parsePlan("0-5m:1rps,4m-6m:1rps"), /begins before the previous part ends/);
  refused(() => parsePlan("0-5:1rps"), /'5' has no unit/);
  refused(() => parsePlan("0-8d:1rps"), /seven days/);
  refused(() => parsePlan("0-1m:1.2.3rps"), /is no number/);
  const points = (text: string, name = "value") => readTable(text).points(name);
  refused(() => points(""), /no datapoints/);
  refused(() => points("time,value\nnow,1"), /line 2 \(now,1\) is not a time and a number/);
  refused(() => points("time,m1,m2\n1700000000,1,x", "m2"), /line 2 .* is not a time and a number/);
  refused(() => readTable("1700000000,1,2"), /has to name them, such as time,m1,m2/);
  refused(() => readTable("time,m1,m1\n"), /two columns of one name/);
  refused(() => readTable("{}"), /unknown format/);
  refused(() => readTable("[1"), /not JSON/);
  refused(() => readTable('[{"time":1}]'), /datapoint 1 of the series is not a time and a number/);
  refused(() => points('[{"time":1,"m1":-1}]', "m1"), /datapoint 1 of the series is not a time and a number/);
});

test("series are read as CSV and as CloudWatch responses with one metric or several", () => {
  const [start, next] = ["2026-01-01T00:00:00Z", "2026-01-01T00:01:00Z"];
  const [startMs, nextMs] = [Date.parse(start), Date.parse(next)];
  for (const text of [
    `time,value\n${start},10\n${next},20\n`,
    `${start},10\n${next},20\n`,
    JSON.stringify([
      [startMs / 1000, 10],
      [nextMs, 20],
    ]),
    JSON.stringify({ MetricDataResults: [{ Timestamps: [next, start], Values: [20, 10] }] }),
    JSON.stringify({
      Label: "x",
      Datapoints: [
        { Timestamp: next, Sum: 20, Unit: "Count" },
        { Timestamp: start, Sum: 10, Unit: "Count" },
      ],
    }),
  ]) {
    const table = readTable(text);
    assert.deepEqual(table.names, ["value"], text);
    assert.deepEqual(
      table.points("value"),
      [
        [startMs, 10],
        [nextMs, 20],
      ],
      text,
    );
  }
  for (const text of [
    `time,m1,m2\n${start},10,\n${next},20,5\n`,
    JSON.stringify([
      { time: start, m1: 10 },
      { time: next, m1: 20, m2: 5 },
    ]),
    JSON.stringify({
      MetricDataResults: [
        { Id: "m1", Timestamps: [next], Values: [20] },
        { Id: "m2", Timestamps: [next], Values: [5] },
        { Id: "m1", Timestamps: [start], Values: [10] },
      ],
    }),
  ]) {
    const table = readTable(text);
    assert.deepEqual(table.names, ["m1", "m2"], text);
    const expected = [
      [startMs, 10],
      [nextMs, 20],
    ];
    assert.deepEqual([table.points("m1"), table.points("m2")], [expected, [[nextMs, 5]]], text);
  }
  const ramp = parsePlan("0-10s:0..100rps,20s-30s:60rpm");
  assert.deepEqual([ramp.at(5000), ramp.at(15_000), ramp.at(25_000)], [50, 0, 1]);
});

test("the command prints graphs, and reports errors in a plan or a policy", async () => {
  const directory = await mkdtemp(join(tmpdir(), "simulate-"));
  try {
    const policy = join(directory, "policy.json");
    await writeFile(
      policy,
      JSON.stringify({
        PolicyName: "target",
        PolicyType: "TargetTrackingScaling",
        TargetTrackingScalingPolicyConfiguration: { TargetValue: 600, ...predefined },
      }),
    );
    const run = (...more: readonly string[]) =>
      promisify(execFile)(process.execPath, [main, "autoscale", "simulate", "--policy", policy, ...more]);
    const { stdout } = await run("--plan", "0-2m:5rps,2m-10m:30rps");
    assert.match(stdout, /instances in service\n +3 \|/);
    assert.match(stdout, /5m01s {2}Setting desired instance count to 3\./);
    await assert.rejects(run("--plan", "never"), /galatea autoscale: 'never' is not like 5m-20m:200rps/);
    await writeFile(policy, JSON.stringify({ TargetValue: -1, ...predefined }));
    await assert.rejects(run("--plan", "0-1m:1rps"), /galatea autoscale: TargetValue must be greater than 0/);
  } finally {
    await rm(directory, { recursive: true });
  }
});

test("graphs without decisions and graphs of a long series have the same width", async () => {
  const policy = { TargetValue: 600, ...predefined };
  for (const plan of ["0-1m:1rps", "0-20h:1rps"]) {
    const simulation = await simulateScaling(asked(plan, policy));
    const text = chartText(simulation, 60);
    assert.ok(text.split("\n").every((line) => line.length <= 160));
  }
});
