import assert from "node:assert/strict";
import { test } from "node:test";
import * as fc from "fast-check";
import { InMemoryMetricStore } from "./in-memory-metric-store.ts";
import { printSeries } from "./series-exposition.ts";
import type { SeriesKey } from "./series.ts";

const startMs = Date.UTC(2026, 10, 22);
const minuteMs = 60_000;

function opened() {
  const clock = {
    nowMs: startMs,
    epochMs: () => clock.nowMs,
    monotonicNs: () => clock.nowMs * 1e6,
    timer: () => ({ [Symbol.dispose]() {} }),
  };
  const series = new InMemoryMetricStore({ clock, seriesMax: 1000, bytesMax: 1e7 });
  const text = (seriesMax = 100) =>
    printSeries(series, { seriesMax, nowMs: clock.nowMs, yieldToEventLoop: () => Promise.resolve() });
  return { clock, series, text };
}

const key = (namespace: string, metricName: string, dimensions: Readonly<Record<string, string>>): SeriesKey => ({
  namespace,
  metricName,
  unit: "None",
  dimensions: Object.entries(dimensions).map(([name, value]) => ({ name, value })),
});

test("series are gauges of the last whole minute, families together, dimensions as labels", async () => {
  const { clock, series, text } = opened();
  for (const [endpoint, value] of [
    ["a", 1],
    ["b", 5],
    ["a", 3],
  ] as const) {
    const dimensions = { EndpointName: endpoint, VariantName: "v" };
    series.recorder(key("AWS/SageMaker", "ModelLatency", dimensions)).record(value);
  }
  series.recorder(key("/aws/sagemaker/Endpoints", "GPUUtilization", {})).record(50);
  series.recorder(key("AWS/SageMaker", "Invocation4XXErrors", {})).record(0);
  assert.ok(!(await text()).includes("aws_"), "the minute is not over");
  clock.nowMs += minuteMs;
  const lines = (await text()).split("\n");
  assert.deepEqual(
    lines.filter((line) => line.includes("latency_sum") || line.includes("latency_samples")),
    [
      "# HELP aws_sagemaker_model_latency_sum AWS/SageMaker ModelLatency, None, sum of the last whole minute.",
      "# TYPE aws_sagemaker_model_latency_sum gauge",
      'aws_sagemaker_model_latency_sum{endpoint_name="a",variant_name="v"} 4',
      'aws_sagemaker_model_latency_sum{endpoint_name="b",variant_name="v"} 5',
      "# HELP aws_sagemaker_model_latency_samples AWS/SageMaker ModelLatency, None, number of samples of the last whole minute.",
      "# TYPE aws_sagemaker_model_latency_samples gauge",
      'aws_sagemaker_model_latency_samples{endpoint_name="a",variant_name="v"} 2',
      'aws_sagemaker_model_latency_samples{endpoint_name="b",variant_name="v"} 1',
    ],
  );
  assert.ok(lines.includes("aws_sagemaker_endpoints_gpu_utilization_maximum 50"));
  assert.ok(lines.includes("aws_sagemaker_invocation_4xx_errors_sum 0"), lines.join("\n"));
  assert.ok(lines.includes("galatea_series_left_out 0"));
  clock.nowMs += minuteMs;
  assert.ok(!(await text()).includes("aws_"), "nothing was recorded in that minute");
});

test("a sample recorded under several sets of dimensions is in one line, so that sum() counts it once", async () => {
  const { clock, series, text } = opened();
  const variant = { EndpointName: "a", VariantName: "v" };
  const component = { ...variant, InferenceComponentName: "i" };
  for (const dimensions of [variant, { ...variant, EndpointConfigName: "c" }, { ...variant, ContainerName: "first" }])
    series.recorder(key("AWS/SageMaker", "Invocations", dimensions)).record(1);
  for (const dimensions of [component, { InferenceComponentName: "i" }])
    series.recorder(key("AWS/SageMaker", "InvocationsPerCopy", dimensions)).record(1);
  series.recorder(key("AWS/SageMaker", "ConcurrentRequestsPerCopy", { InferenceComponentName: "i" })).record(2);
  series.recorder(key("mine", "Invocations", { EndpointConfigName: "c" })).record(1);
  series.recorder(key("galatea", "endpoint", {})).record(1);
  clock.nowMs += minuteMs;
  const sums = (await text()).split("\n").filter((line) => /^\w+_sum\b/.test(line));
  assert.deepEqual(sums.toSorted(), [
    'aws_sagemaker_concurrent_requests_per_copy_sum{inference_component_name="i"} 2',
    'aws_sagemaker_container_invocations_sum{container_name="first",endpoint_name="a",variant_name="v"} 1',
    'aws_sagemaker_invocations_per_copy_sum{endpoint_name="a",inference_component_name="i",variant_name="v"} 1',
    'aws_sagemaker_invocations_sum{endpoint_name="a",variant_name="v"} 1',
    'mine_invocations_sum{endpoint_config_name="c"} 1',
    "x_galatea_endpoint_sum 1",
  ]);
});

test("series over the limit are omitted and counted; the platform's own series are omitted last", async () => {
  const { clock, series, text } = opened();
  for (let index = 0; index < 20; index++) series.recorder(key("mine", `M${index}`, {})).record(1);
  series.recorder(key("AWS/SageMaker", "Invocations", {})).record(1);
  clock.nowMs += minuteMs;
  const found = await text(5);
  assert.ok(found.includes("aws_sagemaker_invocations_sum 1\n"));
  assert.ok(found.includes("galatea_series_left_out 16\n"));
});

test("property: for any metric names of clients every line is valid, and no two have the same name and labels", async () => {
  const name = fc.oneof(
    fc.string({ minLength: 1, maxLength: 20, unit: "grapheme" }),
    fc.constantFrom('a"b', "a\nb 1", "x{}", "A-B", "A_B"),
  );
  const arbitrary = fc.array(fc.tuple(name, name, fc.array(fc.tuple(name, name), { maxLength: 3 })), { maxLength: 8 });
  await fc.assert(
    fc.asyncProperty(arbitrary, async (input) => {
      const { clock, series, text } = opened();
      for (const [namespace, metricName, dimensions] of input) {
        series.recorder(key(namespace, metricName, Object.fromEntries(dimensions))).record(1);
      }
      clock.nowMs += minuteMs;
      const lines = (await text()).split("\n").filter((line) => line !== "");
      const rows = lines.filter((line) => !line.startsWith("# "));
      for (const line of rows) {
        assert.match(line, /^[a-z_][a-z\d_]*(\{([a-z_][a-z\d_]*="(?:[^"\\\n]|\\["\\n])*",?)*\})? \S+$/);
      }
      const series1 = rows.map((line) => line.slice(0, line.lastIndexOf(" ")));
      assert.equal(new Set(series1).size, series1.length);
      const heads = lines.filter((line) => line.startsWith("# TYPE "));
      assert.equal(new Set(heads).size, heads.length);
    }),
    { numRuns: 200 },
  );
});
