import assert from "node:assert/strict";
import { test } from "node:test";
import type { EvaluatedMetric } from "@galatea/hosting/alarms";
import { InMemoryMetricStore } from "@galatea/base/metrics";
import { createAlarmValueReader } from "./alarm-values.ts";

const startMs = Date.UTC(2026, 10, 24);
const minuteMs = 60_000;

function opened(namespace: string) {
  const clock = {
    nowMs: startMs,
    epochMs: () => clock.nowMs,
    monotonicNs: () => clock.nowMs * 1e6,
    timer: () => ({ [Symbol.dispose]() {} }),
  };
  const series = new InMemoryMetricStore({ clock, seriesMax: 100, bytesMax: 1e7 });
  const metric = { namespace, metricName: "Invocations", dimensions: [{ name: "EndpointName", value: "a" }] };
  const recorder = series.recorder({ ...metric, unit: "None" });
  const read = createAlarmValueReader({ series, clock });
  const values = async (periodMs: number, sinceMs: number) => {
    const watched: EvaluatedMetric = { kind: "metric", metric, statistic: "Sum", unit: null, periodMs };
    const found = await read(watched, { startMs: sinceMs, endMs: clock.nowMs });
    return [...found].map(([atMs, value]) => [(atMs - startMs) / 1000, value]).toSorted(([a], [b]) => a! - b!);
  };
  /** Records a request every second, and evaluates an alarm with the period `periodMs` every ten seconds. */
  const run = async (seconds: number, periodMs: number) => {
    for (let second = 0; second < seconds; second++) {
      recorder.record(1);
      if (second % 10 === 5) await values(periodMs, clock.nowMs - minuteMs);
      clock.nowMs += 1000;
    }
  };
  return { clock, values, run };
}

test("an alarm with a period of 10 s on a one-minute metric gets values every 10 s, from the next minute on", async () => {
  const { clock, values, run } = opened("AWS/SageMaker");
  await run(90, 10_000);
  assert.deepEqual(await values(10_000, startMs), [
    [60, 10],
    [70, 10],
    [80, 10],
  ]);
  assert.deepEqual(await values(minuteMs, startMs), [
    [0, 60],
    [60, 30],
  ]);
  await run(30, minuteMs);
  // Ten minutes after the alarm's last evaluation, the metric returns to a resolution of one minute. This starts at the
  // next whole minute.
  clock.nowMs = startMs + 15 * minuteMs;
  await run(60, minuteMs);
  const lateMs = startMs + 15 * minuteMs;
  assert.deepEqual(await values(minuteMs, lateMs), [[900, 60]]);
  assert.deepEqual(await values(10_000, lateMs), []);
});

test("a metric that a client puts with one-minute resolution keeps that resolution", async () => {
  const { values, run } = opened("mine");
  await run(180, 10_000);
  assert.deepEqual(await values(10_000, startMs), []);
});
