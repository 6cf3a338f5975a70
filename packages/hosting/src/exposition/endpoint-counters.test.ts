import assert from "node:assert/strict";
import { test } from "node:test";
import { systemClock } from "@galatea/base";
import { InMemoryMetricStore, type SeriesKey } from "@galatea/base/metrics";
import { openCountedSeries, EndpointCounters } from "./endpoint-counters.ts";

function opened(rowsMax = 100) {
  const deleted = new Set<string>();
  const series = new InMemoryMetricStore({ clock: systemClock, seriesMax: 1000, bytesMax: 1e7 });
  const counters = new EndpointCounters({ exists: (name) => !deleted.has(name), rowsMax });
  const open = openCountedSeries(counters, (key, resolutionMs) => series.recorder(key, resolutionMs));
  const record = (metricName: string, dimensions: Readonly<Record<string, string>>, value: number) =>
    open(keyOf(metricName, dimensions)).record(value);
  const lines = () => counters.prometheusText().split("\n");
  return { deleted, series, open, record, lines };
}

const keyOf = (metricName: string, dimensions: Readonly<Record<string, string>>): SeriesKey => ({
  namespace: "AWS/SageMaker",
  metricName,
  unit: "None",
  dimensions: Object.entries(dimensions).map(([name, value]) => ({ name, value })),
});

const a = { EndpointName: "a", VariantName: "v" };

test("an endpoint's samples are recorded, and those of its variants are counted once since the start", async () => {
  const { series, record, lines } = opened();
  for (let requestCount = 0; requestCount < 3; requestCount++) {
    record("Invocations", a, 1);
    record("Invocations", { ...a, EndpointConfigName: "c" }, 1);
    record("Invocations", { ...a, ContainerName: "first" }, 1);
    record("Invocation5XXErrors", a, requestCount === 0 ? 1 : 0);
  }
  const found = lines();
  assert.ok(found.includes("# TYPE galatea_endpoint_invocations_total counter"));
  assert.deepEqual(
    found.filter((line) => line.startsWith("galatea_endpoint_invocations_total")),
    ['galatea_endpoint_invocations_total{endpoint_name="a",variant_name="v"} 3'],
  );
  assert.ok(found.includes('galatea_endpoint_5xx_errors_total{endpoint_name="a",variant_name="v"} 1'));
  const everything = { namespace: null, metricName: null, dimensions: [], recordedSinceMs: null };
  assert.equal((await Array.fromAsync(series.list(everything))).flat().length, 4);
});

test("latencies are histograms in seconds, and an inference component's have its name and the endpoint's as labels", () => {
  const { record, lines } = opened();
  const component = { ...a, InferenceComponentName: "i" };
  for (const milliseconds of [2, 40, 4000]) record("ModelLatency", component, milliseconds * 1000);
  record("ModelLatency", { InferenceComponentName: "i" }, 1000);
  const labels = 'endpoint_name="a",inference_component_name="i",variant_name="v"';
  const found = lines();
  for (const line of [
    "# TYPE galatea_endpoint_model_latency_seconds histogram",
    `galatea_endpoint_model_latency_seconds_count{${labels}} 3`,
    `galatea_endpoint_model_latency_seconds_sum{${labels}} 4.042`,
    `galatea_endpoint_model_latency_seconds_bucket{${labels},le="0.0025"} 1`,
    `galatea_endpoint_model_latency_seconds_bucket{${labels},le="2.5"} 2`,
    `galatea_endpoint_model_latency_seconds_bucket{${labels},le="+Inf"} 3`,
  ])
    assert.ok(found.includes(line), `${line}\n${found.join("\n")}`);
  assert.equal(found.filter((line) => line.startsWith("galatea_endpoint_model_latency_seconds_count")).length, 1);
});

test("the counters of a deleted endpoint are dropped, and samples over the limit of counters are counted as left out", () => {
  const { deleted, record, lines } = opened(2);
  for (const name of ["a", "b", "c"]) record("Invocations", { ...a, EndpointName: name }, 1);
  assert.ok(lines().includes("galatea_endpoint_samples_left_out 1"));
  deleted.add("a");
  assert.ok(!lines().some((line) => line.includes('endpoint_name="a"')));
  record("Invocations", { ...a, EndpointName: "c" }, 1);
  assert.ok(lines().includes('galatea_endpoint_invocations_total{endpoint_name="c",variant_name="v"} 1'));
});

test("a recorder of a deleted endpoint counts from zero for a new endpoint of the same name", () => {
  const { deleted, open, lines } = opened();
  const recorder = open(keyOf("Invocations", a));
  recorder.record(5);
  deleted.add("a");
  lines();
  deleted.delete("a");
  recorder.record(1);
  assert.ok(lines().includes('galatea_endpoint_invocations_total{endpoint_name="a",variant_name="v"} 1'));
});
