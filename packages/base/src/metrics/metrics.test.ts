import assert from "node:assert/strict";
import { test } from "node:test";
import { setImmediate as nextTurn } from "node:timers/promises";
import * as fc from "fast-check";
import type { Clock } from "../core/index.ts";
import { parseCpuTimes, parseMemInfo } from "./host-metrics.ts";
import { MetricRegistry } from "./registry.ts";
import { InMemoryMetricStore } from "./in-memory-metric-store.ts";
import { createGpuMetrics, type GpuReadings } from "./gpu-metrics.ts";
import { createHostMetrics } from "./host-metrics.ts";
import { createInferenceMetrics } from "./inference-metrics.ts";
import type { MetricName, SeriesChanges, SeriesFilter, SeriesKey, StoredSeries } from "./series.ts";
import { pointBytes } from "./series-store.ts";
import { ValueHistogram } from "./value-histogram.ts";

function clockAt(epochMs: number): Clock & { ms: number } {
  const clock = {
    ms: epochMs,
    epochMs: () => clock.ms,
    monotonicNs: () => clock.ms * 1e6,
    timer: () => ({ [Symbol.dispose]() {} }),
  };
  return clock;
}

const listed = async (
  series: InMemoryMetricStore,
  filter: Partial<SeriesFilter> = {},
): Promise<readonly MetricName[]> => {
  const all = { namespace: null, metricName: null, dimensions: [], recordedSinceMs: null };
  return (await Array.fromAsync(series.list({ ...all, ...filter }))).flat();
};

const minute = 60_000;
const start = Date.UTC(2026, 10, 21, 12);
const latency: SeriesKey = {
  namespace: "AWS/SageMaker",
  metricName: "ModelLatency",
  dimensions: [
    { name: "VariantName", value: "v" },
    { name: "EndpointName", value: "e" },
  ],
  unit: "Microseconds",
};
const everything = { startMs: start - 1000 * minute, endMs: start + 1e9, unit: null };

test("a model's metrics are printed as by tritonserver 2.51, start at 0, and are removed when it unloads", () => {
  const registry = new MetricRegistry({ rowsMax: 100 });
  const metrics = createInferenceMetrics(registry, { histogramLatencies: false });
  const labels = { model: "add", version: "1", namespace: "", tags: new Map([["team", 'q"x']]) };
  const rows = metrics.open({ ...labels, loadSeconds: 0.5, pendingCount: () => 3 });
  rows.succeeded(
    {
      queuedNs: 1000,
      startedNs: 5999,
      computeInputNs: 0,
      computeInferNs: 7000,
      computeOutputNs: 0,
      batchSize: 2,
      countsExecution: true,
    },
    20_000,
  );
  rows.failed("REJECTED", { countsExecution: false });
  rows.failed("BACKEND", { countsExecution: true });
  const text = registry.print();
  for (const line of [
    "# HELP nv_inference_request_success Number of successful inference requests, all batch sizes",
    "# TYPE nv_inference_request_success counter",
    'nv_inference_request_success{_team="q\\"x",model="add",version="1"} 1',
    'nv_inference_request_failure{_team="q\\"x",model="add",reason="REJECTED",version="1"} 1',
    'nv_inference_request_failure{_team="q\\"x",model="add",reason="BACKEND",version="1"} 1',
    'nv_inference_count{_team="q\\"x",model="add",version="1"} 2',
    'nv_inference_exec_count{_team="q\\"x",model="add",version="1"} 2',
    'nv_inference_request_duration_us{_team="q\\"x",model="add",version="1"} 20',
    'nv_inference_queue_duration_us{_team="q\\"x",model="add",version="1"} 4',
    'nv_inference_pending_request_count{_team="q\\"x",model="add",version="1"} 3',
    'nv_model_load_duration_secs{_team="q\\"x",model="add",version="1"} 0.5',
  ]) {
    assert.ok(text.includes(`${line}\n`), `${line}\nin\n${text}`);
  }
  rows.close();
  assert.equal(registry.print(), "");
});

test("a histogram family counts cumulatively and ends with +Inf", () => {
  const registry = new MetricRegistry({ rowsMax: 10 });
  const row = registry.histogram("h", "help", [100, 500]).row({ model: "m" });
  for (const value of [50, 100, 200, 9000]) row.observe(value);
  assert.equal(
    registry.print(),
    '# HELP h help\n# TYPE h histogram\nh_count{model="m"} 4\nh_sum{model="m"} 9350\n' +
      'h_bucket{model="m",le="100"} 2\nh_bucket{model="m",le="500"} 3\nh_bucket{model="m",le="+Inf"} 4\n',
  );
});

test("a family rejects series beyond its limit", () => {
  const family = new MetricRegistry({ rowsMax: 1 }).counter("c", "help");
  family.row({ a: "1" }).add(1);
  assert.equal(family.row({ a: "1" }).value, 1);
  assert.throws(() => family.row({ a: "2" }), /metric family 'c' has reached its limit/);
});

test("CPU utilisation is the share of busy ticks since the previous reading", () => {
  const clock = clockAt(0);
  let stat = "cpu  100 0 0 100 0 0 0 0 0 0\ncpu0 1\n";
  const registry = new MetricRegistry({ rowsMax: 10 });
  createHostMetrics(registry, {
    clock,
    intervalMs: 1000,
    read: (path) => (path === "/proc/stat" ? stat : "MemTotal:  8 kB\nMemAvailable:  2 kB\n"),
  });
  stat = "cpu  130 0 0 170 0 0 0 0 0 0\n";
  clock.ms = 1000;
  assert.match(registry.print(), /nv_cpu_utilization 0.3\n/);
  stat = "cpu  330 0 0 170 0 0 0 0 0 0\n";
  clock.ms += 999;
  assert.match(registry.print(), /nv_cpu_utilization 0.3\n/, "the interval is not over");
  clock.ms += 1;
  assert.match(registry.print(), /nv_cpu_utilization 1\n/);
  assert.match(registry.print(), /nv_cpu_memory_used_bytes 6144\n/);
  assert.deepEqual(parseCpuTimes(stat), { busy: 330, total: 500 });
  assert.deepEqual(parseMemInfo("MemTotal:  8 kB\nMemAvailable:  2 kB\n"), { total: 8192, used: 6144 });
});

test("GPUs have Triton's gauges where the GPU reports the value, and energy accumulates", () => {
  const registry = new MetricRegistry({ rowsMax: 10 });
  const reported = {
    utilization: 0.5,
    memoryTotalBytes: 16e9,
    memoryUsedBytes: 4e9,
    powerWatts: 70.5,
    powerLimitWatts: 300,
    energyJoules: 10,
  };
  let figures: GpuReadings[] = [];
  const refresh = createGpuMetrics(registry, () => figures);
  refresh();
  assert.equal(registry.print(), "", "no GPU, no family");
  figures = [
    { uuid: "GPU-1", ...reported },
    { uuid: "GPU-2", ...reported, powerWatts: null, energyJoules: null },
  ];
  refresh();
  assert.deepEqual(
    registry
      .print()
      .split("\n")
      .filter((line) => !line.startsWith("#")),
    [
      'nv_gpu_utilization{gpu_uuid="GPU-1"} 0.5',
      'nv_gpu_utilization{gpu_uuid="GPU-2"} 0.5',
      'nv_gpu_memory_total_bytes{gpu_uuid="GPU-1"} 16000000000',
      'nv_gpu_memory_total_bytes{gpu_uuid="GPU-2"} 16000000000',
      'nv_gpu_memory_used_bytes{gpu_uuid="GPU-1"} 4000000000',
      'nv_gpu_memory_used_bytes{gpu_uuid="GPU-2"} 4000000000',
      'nv_gpu_power_usage{gpu_uuid="GPU-1"} 70.5',
      'nv_gpu_power_limit{gpu_uuid="GPU-1"} 300',
      'nv_gpu_power_limit{gpu_uuid="GPU-2"} 300',
      'nv_energy_consumption{gpu_uuid="GPU-1"} 10',
      "",
    ],
  );
  figures = [{ uuid: "GPU-2", ...reported, energyJoules: 3 }];
  refresh();
  assert.doesNotMatch(registry.print(), /nv_gpu.*GPU-1/, "series without recent values have no gauges");
  assert.match(registry.print(), /nv_energy_consumption{gpu_uuid="GPU-1"} 10\n.*{gpu_uuid="GPU-2"} 3\n/);
});

test("percentiles are within 1.5 % of the exact ones, also after merging and storing", () => {
  const value = fc.double({ min: 1e-3, max: 1e9, noNaN: true });
  fc.assert(
    fc.property(
      fc.array(value, { minLength: 1, maxLength: 60 }),
      fc.double({ min: 0, max: 1, noNaN: true }),
      (values, fraction) => {
        const halves = [new ValueHistogram(), new ValueHistogram()] as const;
        for (const [index, each] of values.entries()) (index % 2 === 0 ? halves[0] : halves[1]).add(each, 1);
        const merged = ValueHistogram.decode(halves[0].encode());
        merged.merge(halves[1]);
        const rank = Math.max(1, Math.ceil(fraction * values.length));
        const exact = values.toSorted((a, b) => a - b)[rank - 1] as number;
        assert.ok(Math.abs(merged.valueAt(rank) - exact) <= exact * 0.0151, `${merged.valueAt(rank)} ${exact}`);
      },
    ),
  );
});

test("a histogram stays bounded and keeps its high percentiles", () => {
  const histogram = new ValueHistogram();
  for (let value = 1; value < 1e9; value *= 1.01) histogram.add(value, 1);
  assert.ok(histogram.byteLength <= 160 * 16);
  assert.ok(histogram.valueAt(2000) > 4e8);
});

/** Returns all changes to write, as one batch. */
function taken(series: InMemoryMetricStore, openAtMs: number | null = null): SeriesChanges {
  const parts = [...series.takeChanges(openAtMs, 1e9)];
  assert.ok(parts.length <= 1);
  return parts[0] ?? { opened: [], points: [], evicted: [] };
}

test("taken rows restore a store with the same results, and no row is taken twice", async () => {
  const clock = clockAt(start);
  const series = new InMemoryMetricStore({ clock, seriesMax: 10, bytesMax: 1e6 });
  const recorder = series.recorder(latency);
  for (let value = 1; value <= 100; value++) recorder.record(value);
  series.recordSet(
    { ...latency, unit: "None" },
    { sampleCount: 2, sum: 3, minimum: 1, maximum: 2 },
    {
      timestampMs: start,
      resolutionMs: 60_000,
    },
  );
  assert.deepEqual(taken(series, start).points, [], "the minute is not over");
  const changes = taken(series);
  assert.deepEqual([changes.opened.length, changes.points.length], [2, 2]);
  assert.deepEqual(taken(series).points, []);
  const restored = new InMemoryMetricStore({ clock, seriesMax: 10, bytesMax: 1e6 });
  await restored.load({ series: changes.opened, points: [changes.points], nextNumber: 3 });
  const [first, second] = await restored.query(latency, { ...everything, startMs: start, periodMs: minute });
  assert.deepEqual([first?.sampleCount, first?.sum, first?.maximum], [100, 5050, 100]);
  assert.ok(Math.abs((first?.percentile(0.9) ?? 0) - 90) < 1.5);
  assert.deepEqual([second?.unit, second?.sampleCount, second?.percentile(0.5)], ["None", 2, null]);
  assert.deepEqual(
    await listed(restored, { recordedSinceMs: start + 1 }),
    [],
    "a series is as recently active as its last point",
  );
  restored.recorder(latency).record(7);
  const since = taken(restored);
  assert.deepEqual([since.opened, since.points.length], [[], 1], "only what changed since");
  assert.equal(since.points[0]?.sampleCount, 101, "the minute goes on where it was");
});

test("rows that were not written are taken again with their current state, and batches have about the requested size", () => {
  const clock = clockAt(start);
  const series = new InMemoryMetricStore({ clock, seriesMax: 10, bytesMax: 1e6 });
  for (let index = 0; index < 6; index++) series.recorder({ ...latency, metricName: `m${index}` }).record(1);
  const parts = [...series.takeChanges(null, 4)];
  assert.deepEqual(
    parts.map(({ points }) => points.length),
    [4, 2],
  );
  series.putBack(parts[0] as SeriesChanges);
  series.recorder({ ...latency, metricName: "m0" }).record(1);
  const again = taken(series);
  assert.deepEqual([again.opened.length, again.points.length], [4, 4]);
  assert.equal(again.points.find(({ seriesNumber }) => seriesNumber === 1)?.sampleCount, 2);
});

test("the eviction of a stored series is reported, and its number is not reused", async () => {
  const clock = clockAt(start);
  const series = new InMemoryMetricStore({ clock, seriesMax: 1, bytesMax: 1e6 });
  const recorder = series.recorder(latency);
  recorder.record(1);
  assert.deepEqual(taken(series).evicted, []);
  series.recorder({ ...latency, metricName: "other" }).record(1);
  recorder.record(1);
  const changes = taken(series);
  assert.deepEqual(changes.evicted, [1]);
  assert.deepEqual(
    changes.opened.map(({ number }) => number),
    [3],
  );
  // The process ended before it wrote the eviction. Of two series with the same name, the later one counts.
  const restored = new InMemoryMetricStore({ clock, seriesMax: 5, bytesMax: 1e6 });
  const opened = [{ ...changes.opened[0], number: 1 } as StoredSeries, ...changes.opened];
  const points = changes.points.flatMap((point) => [{ ...point, seriesNumber: 1, sum: 9 }, point]);
  await restored.load({ series: opened, points: [points], nextNumber: 4 });
  const [point] = await restored.query(latency, { ...everything, startMs: start, periodMs: minute });
  assert.equal(point?.sum, 1);
  assert.deepEqual(taken(restored).evicted, [1]);
});

test("a merged point is stored once, when complete, and replaces the points that it was merged from", async () => {
  const clock = clockAt(start);
  const tiers = [
    { periodMs: minute, retentionMs: 10 * minute },
    { periodMs: 5 * minute, retentionMs: 600 * minute },
  ];
  const series = new InMemoryMetricStore({ clock, seriesMax: 10, bytesMax: 1e6, tiers });
  const recorder = series.recorder(latency);
  for (let index = 0; index < 5; index++, clock.ms += minute) recorder.record(index);
  const minutes = taken(series);
  assert.equal(minutes.points.length, 5);
  clock.ms = start + 14 * minute;
  assert.deepEqual((await series.takeExpired(nextTurn))[0], { periodMs: minute, beforeMs: start });
  assert.deepEqual(taken(series).points, [], "a part of the five minutes is still kept in minutes");
  clock.ms = start + 15 * minute;
  assert.deepEqual((await series.takeExpired(nextTurn))[0], { periodMs: minute, beforeMs: start + 5 * minute });
  const merged = taken(series);
  assert.deepEqual(
    merged.points.map(({ periodMs, startMs, sum }) => [periodMs, startMs, sum]),
    [[5 * minute, start, 10]],
  );
  // The process ended before it deleted the merged minutes.
  const restored = new InMemoryMetricStore({ clock, seriesMax: 10, bytesMax: 1e6, tiers });
  await restored.load({ series: minutes.opened, points: [minutes.points, merged.points], nextNumber: 2 });
  const [point] = await restored.query(latency, { ...everything, startMs: start, periodMs: 5 * minute });
  assert.deepEqual([point?.sampleCount, point?.sum], [5, 10]);
});

test("memory is limited in series and bytes; a recorder of an evicted series starts a new one", async () => {
  const clock = clockAt(start);
  const series = new InMemoryMetricStore({ clock, seriesMax: 3, bytesMax: 20_000 });
  const recorder = series.recorder(latency);
  recorder.record(1);
  for (let index = 0; index < 10; index++) {
    clock.ms += 1000;
    series.recorder({ ...latency, metricName: `m${index}` }).record(1);
  }
  assert.equal((await listed(series)).length, 3);
  recorder.record(2);
  assert.equal((await series.query(latency, { ...everything, periodMs: minute }))[0]?.sum, 2);
  for (let index = 0; index < 600; index++, clock.ms += minute) recorder.record(index);
  const kept = await series.query(latency, { ...everything, startMs: start, periodMs: minute });
  assert.ok(kept.length < 130, `${kept.length} points kept`);
  assert.equal(kept.at(-1)?.sum, 599);
});

test("upkeep over many series runs in short steps, and has the result of a single step", async () => {
  const clock = clockAt(start);
  const tiers = [{ periodMs: minute, retentionMs: 10 * minute }];
  const series = new InMemoryMetricStore({ clock, seriesMax: 10_000, bytesMax: 1e8, tiers });
  for (let index = 0; index < 5000; index++) {
    series.record(
      { ...latency, metricName: `m${index}` },
      { value: 1, count: 1 },
      { timestampMs: start, resolutionMs: minute },
    );
  }
  clock.ms = start + 20 * minute;
  let turnCount = 0;
  await series.takeExpired(async () => void (turnCount += 1));
  assert(turnCount >= 5, `${turnCount}`);
  assert.deepEqual(await listed(series), []);
});

test("recording samples alone keeps the byte limit: each sample continues the upkeep", async () => {
  const clock = clockAt(start);
  const series = new InMemoryMetricStore({ clock, seriesMax: 10_000, bytesMax: 200_000 });
  for (let round = 0; round < 10; round++, clock.ms += 60 * minute) {
    for (let index = 0; index < 300; index++) {
      series.record(
        { ...latency, metricName: `m${index}` },
        { value: 1, count: 1 },
        { timestampMs: clock.ms, resolutionMs: minute },
      );
    }
  }
  let pointCount = 0;
  for (const name of await listed(series))
    pointCount += (await series.query(name, { ...everything, endMs: clock.ms, startMs: start, periodMs: minute }))
      .length;
  assert(pointCount * pointBytes <= 300_000, `${pointCount}`);
});

test("series with long dimensions are limited by their bytes, and evict no series of the platform", async () => {
  const clock = clockAt(start);
  const isWritableByClients = (namespace: string) => namespace === "custom";
  const bounds = { seriesMax: 100_000, bytesMax: 512 * 2 ** 20, namesBytesMax: 2 * 2 ** 20 };
  const series = new InMemoryMetricStore({ clock, ...bounds, isWritableByClients });
  for (let index = 0; index < 100; index++) series.recorder({ ...latency, metricName: `own${index}` }).record(1);
  const dimensions = (index: number) =>
    Array.from({ length: 30 }, (_, at) => ({
      name: `${at}`.padEnd(255, "n"),
      value: `${index} ${at}`.padEnd(1024, "v"),
    }));
  let kept = 0;
  for (let index = 0; index < 2000; index++) {
    clock.ms += 1;
    const key = { namespace: "custom", metricName: "m", unit: "None", dimensions: dimensions(index) };
    series.recorder(key).record(1);
    kept = (await listed(series)).length;
    assert.ok(kept <= 130, `${kept} series after ${index + 1}`);
  }
  assert.equal((await listed(series, { namespace: latency.namespace })).length, 100);
  assert.ok((await listed(series, { namespace: "custom" })).length >= 10);
  const [newest] = await series.query(
    { namespace: "custom", metricName: "m", dimensions: dimensions(1999) },
    { ...everything, startMs: start, periodMs: minute },
  );
  assert.equal(newest?.sum, 1);
});
