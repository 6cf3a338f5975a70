import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import * as fc from "fast-check";
import { createLogger, silentLogger, type Clock } from "@galatea/base";
import { InMemoryMetricStore, type SeriesKey, type StoredPoint } from "@galatea/base/metrics";
import { UpkeepClock } from "./contracts/index.ts";
import { decodeBlock, encodeBlock } from "./metric-blocks.ts";
import { metricMigrations } from "./metric-tables.ts";
import { openRecords, recordsDefaults, type Records } from "./records.ts";
import { StoredMetrics, storedMetricLimits } from "./stored-metrics.ts";

const root = mkdtempSync(join(tmpdir(), "galatea-metric-records-"));
after(() => rmSync(root, { recursive: true, force: true }));

const minute = 60_000;
const hour = 60 * minute;
const day = 24 * hour;
const start = Date.UTC(2026, 10, 21, 12);

const openDatabase = (name: string) =>
  openRecords({
    path: join(root, `${name}.sqlite`),
    migrations: metricMigrations,
    ...recordsDefaults,
    logger: silentLogger,
  });

/** Opens metrics in existing records, which the metrics do not dispose. */
async function open(
  input: Records,
  clock: Clock,
  { seriesMax = 100, storedBytesMax = storedMetricLimits.storedBytesMax } = {},
) {
  const series = new InMemoryMetricStore({ clock, seriesMax, bytesMax: 1e8 });
  const limits = { storedBytesMax, pointsPerWrite: 10 };
  const records = withWrite(input, (statements) => input.write(statements));
  return { series, kept: await StoredMetrics.open({ records, series, limits, clock, logger: silentLogger }) };
}

/** Returns the series that a platform would load now. Writes nothing. */
async function found(records: Records, epochMs = start): Promise<InMemoryMetricStore> {
  const clock = new UpkeepClock(epochMs);
  const { series, kept } = await open(
    withWrite(records, () => Promise.resolve([])),
    clock,
  );
  await kept[Symbol.asyncDispose]();
  return series;
}

const withWrite = (records: Records, write: Records["write"]): Records => ({
  write,
  rows: (sql, ...values) => records.rows(sql, ...values),
  [Symbol.asyncDispose]: () => Promise.resolve(),
});

const named = (metricName: string): SeriesKey => ({
  namespace: "Galatea/Models",
  metricName,
  dimensions: [
    { name: "EndpointName", value: "e" },
    { name: "TargetModel", value: "m.tar.gz" },
  ],
  unit: "Microseconds",
});
const latency = named("ModelLatency");
const sums = async (series: InMemoryMetricStore, key = latency, periodMs = minute) => {
  const points = await series.query(key, {
    startMs: start - 100 * day,
    endMs: start + 100 * day,
    periodMs,
    unit: null,
  });
  return points.map(({ startMs, sum }) => [startMs, sum]);
};
const count = async (records: Records, table: string) =>
  Number((await records.rows(`SELECT COUNT(*) AS count FROM ${table}`))[0]?.["count"]);

test("each minute adds the changed points without rewriting others; thousands of series are a few rows", async () => {
  await using records = await openDatabase("sizes");
  const clock = new UpkeepClock(start);
  const { series, kept } = await open(records, clock);
  const recorders = Array.from({ length: 95 }, (_, index) => series.recorder(named(`m${index}`)));
  series.recorder(named("never recorded"));
  for (const [index, recorder] of recorders.entries()) recorder.record(index);
  await clock.passTo(start + minute + 250);
  assert.deepEqual([await count(records, "metric_series"), await count(records, "metric_block")], [95, 10]);
  recorders[3]?.record(1);
  await clock.passTo(start + 2 * minute + 250);
  await clock.passTo(start + 3 * minute + 250);
  const [row] = await records.rows(
    "SELECT COUNT(*) AS count, MAX(byte_count) AS bytes FROM metric_block WHERE id > 10",
  );
  assert.deepEqual({ ...row }, { count: 1, bytes: 48 });
  await kept[Symbol.asyncDispose]();
});

test("merged points are deleted when their merge is written; none is lost or counted twice meanwhile", async () => {
  await using records = await openDatabase("aging");
  const clock = new UpkeepClock(start);
  const { series, kept } = await open(records, clock);
  const recorder = series.recorder(latency);
  for (let index = 1; index <= 5; index++) {
    recorder.record(index);
    await clock.passTo(start + index * minute + 250);
  }
  const periods = async () => (await records.rows("SELECT period_ms FROM metric_block")).map((row) => row["period_ms"]);
  assert.deepEqual(await periods(), [minute, minute, minute, minute, minute]);
  clock.ms = start + 15 * day + 4 * minute;
  assert.deepEqual(await sums(await found(records, clock.ms), latency, hour), [[start, 15]], "stopped in the meantime");
  await clock.passTo(start + 15 * day + 4 * minute);
  assert.equal((await periods()).length, 5);
  await clock.passTo(start + 15 * day + 5 * minute + 250);
  assert.deepEqual(await periods(), [5 * minute]);
  assert.deepEqual(await sums(await found(records, clock.ms), latency, 5 * minute), [[start, 15]]);
  await clock.passTo(start + 600 * day);
  assert.deepEqual(await periods(), []);
  await kept[Symbol.asyncDispose]();
});

test("a failed write is logged, and its points are written with the next one", async () => {
  await using records = await openDatabase("failing");
  const clock = new UpkeepClock(start);
  let isFull = true;
  const failing = withWrite(records, (statements) =>
    isFull ? Promise.reject(new Error("database or disk is full")) : records.write(statements),
  );
  const lines: string[] = [];
  const logger = createLogger((level, message, fields) =>
    lines.push(`${level} ${message} ${String(fields?.["error"])}`),
  );
  const series = new InMemoryMetricStore({ clock, seriesMax: 10, bytesMax: 1e8 });
  const limits = storedMetricLimits;
  const kept = await StoredMetrics.open({ records: failing, series, limits, clock, logger });
  series.recorder(latency).record(1);
  await clock.passTo(start + minute + 250);
  assert.deepEqual(lines, [
    "error metrics were not written; they are kept and written later Error: database or disk is full",
  ]);
  isFull = false;
  series.recorder(latency).record(2);
  await clock.passTo(start + 2 * minute + 250);
  assert.deepEqual(await sums(await found(records, clock.ms)), [
    [start, 1],
    [start + minute, 2],
  ]);
  await kept[Symbol.asyncDispose]();
});

test("bytes on disk are limited: the oldest hours are deleted, and an evicted series' row with it", async () => {
  await using records = await openDatabase("bounds");
  const clock = new UpkeepClock(start);
  const { series, kept } = await open(records, clock, { seriesMax: 2, storedBytesMax: 450 });
  const recorder = series.recorder(latency);
  for (let index = 0; index < 12; index++) {
    recorder.record(index);
    await clock.passTo(start + (index + 1) * hour + 250);
  }
  const again = await sums(await found(records, clock.ms));
  assert.ok(again.length <= 10 && again.length >= 8, `${again.length} points`);
  assert.deepEqual(again.at(-1), [start + 11 * hour, 11]);
  for (let index = 0; index < 5; index++) {
    clock.ms += 1000;
    series.recorder(named(`m${index}`)).record(1);
  }
  await kept[Symbol.asyncDispose]();
  assert.equal(await count(records, "metric_series"), 2);
  const restored = await open(records, clock, { seriesMax: 2 });
  const everything = { namespace: null, metricName: null, dimensions: [], recordedSinceMs: null };
  const [listed] = await Array.fromAsync(restored.series.list(everything));
  assert.deepEqual(
    listed?.map(({ metricName }) => metricName),
    ["m3", "m4"],
  );
  restored.series.recorder(named("m5")).record(1);
  await restored.kept[Symbol.asyncDispose]();
  const numbers = (await records.rows("SELECT number FROM metric_series")).map((row) => row["number"]);
  assert.deepEqual(numbers, [6, 7], "no number is used twice");
});

test("written points are there after kill -9 of the process", async () => {
  const from = (path: string) => JSON.stringify(import.meta.resolve(path));
  const program = `
    import { systemClock, silentLogger as logger } from ${from("@galatea/base")};
    import { openMetrics } from ${from("./index.ts")};
    let ms = ${start};
    let armed = 0;
    const clock = { ...systemClock, epochMs: () => ms, timer(_, fire) {
      if (++armed > 3) process.stdout.write("written\\n");
      else setImmediate(() => { ms += ${minute}; fire(); recorder.record(armed); });
      return { [Symbol.dispose]() {} };
    } };
    const path = ${JSON.stringify(join(root, "killed.sqlite"))};
    const series = await openMetrics({ path, seriesMax: 10, bytesMax: 1e8, clock, logger });
    const recorder = series.recorder(${JSON.stringify(latency)});
    recorder.record(0.5);
    setInterval(() => {}, 1000);`;
  writeFileSync(join(root, "writer.mjs"), program);
  const child = spawn(process.execPath, [join(root, "writer.mjs")], { stdio: ["ignore", "pipe", "inherit"] });
  for await (const chunk of child.stdout as AsyncIterable<Buffer>) {
    assert.equal(chunk.toString(), "written\n");
    child.kill("SIGKILL");
  }
  await using records = await openDatabase("killed");
  assert.deepEqual(await sums(await found(records)), [
    [start, 0.5],
    [start + minute, 1],
    [start + 2 * minute, 2],
  ]);
});

test("a block decodes to its points; a truncated one or one of another version is rejected", () => {
  const number = fc.double({ noNaN: true, noDefaultInfinity: true });
  const point = fc.record({
    seriesNumber: fc.integer({ min: 1, max: 2 ** 48 - 1 }),
    periodMs: fc.constant(minute),
    startMs: fc.integer({ min: 0, max: 59 }).map((index) => start + index * minute),
    sampleCount: number,
    sum: number,
    minimum: number,
    maximum: number,
    histogram: fc.oneof(fc.constant(null), fc.uint8Array({ maxLength: 1600 })),
  });
  const location = { periodMs: minute, startMs: start };
  fc.assert(
    fc.property(fc.array(point, { maxLength: 20 }), fc.nat(), (points: StoredPoint[], cut) => {
      const block = encodeBlock(location, points);
      assert.equal(block.buffer.byteLength, block.byteLength);
      const bytes = (each: StoredPoint) => ({ ...each, histogram: each.histogram && [...each.histogram] });
      assert.deepEqual([...decodeBlock(location, block)].map(bytes), points.map(bytes));
      try {
        const part = [...decodeBlock(location, block.subarray(0, cut % block.byteLength))].map(bytes);
        assert.deepEqual(part, points.slice(0, part.length).map(bytes));
      } catch (error) {
        assert.ok(error instanceof RangeError, String(error));
      }
    }),
  );
  assert.throws(() => [...decodeBlock(location, Uint8Array.of(2))], RangeError);
});
