import assert from "node:assert/strict";
import { test } from "node:test";
import { MetricBatches } from "./metric-batches.ts";
import { parseMetricBatch, type MetricBatch } from "./metric-batch.ts";

const key = { namespace: "AWS/SageMaker", metricName: "Invocations", unit: "None", dimensions: [] };
const batchOf = (gateway: string, number: number): MetricBatch => ({
  gateway,
  number,
  series: [{ key, resolutionMs: 60_000, samples: [{ startMs: 120_000, values: [[1, 3]] }] }],
});

test("a batch that a gateway sends again is recorded once; those of another gateway are separate", () => {
  const recorded: unknown[] = [];
  const batches = new MetricBatches({ record: (...sample) => void recorded.push(sample) });
  for (const batch of [batchOf("a", 1), batchOf("a", 1), batchOf("b", 1), batchOf("a", 2)]) batches.record(batch);
  const sample = [key, { value: 1, count: 3 }, { timestampMs: 120_000, resolutionMs: 60_000 }];
  assert.deepEqual(recorded, [sample, sample, sample]);
});

test("a body is parsed to the batch that was sent, and anything else is rejected", () => {
  const batch = batchOf("a", 1);
  assert.deepEqual(parseMetricBatch(JSON.stringify(batch)), batch);
  const [series] = batch.series;
  const wrong = [
    "",
    "null",
    "{}",
    JSON.stringify({ ...batch, number: 1.5 }),
    JSON.stringify({ ...batch, series: [{ ...series, resolutionMs: 1 }] }),
    JSON.stringify({ ...batch, series: [{ ...series, key: { ...key, unit: 1 } }] }),
    JSON.stringify({ ...batch, series: [{ ...series, samples: [{ startMs: 0, values: [[null, 1]] }] }] }),
    JSON.stringify({ ...batch, series: [{ ...series, samples: [{ startMs: 0, values: [[1, -1]] }] }] }),
  ];
  for (const body of wrong) assert.throws(() => parseMetricBatch(body), { code: "ValidationException" }, body);
});
