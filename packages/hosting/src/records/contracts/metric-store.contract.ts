import assert from "node:assert/strict";
import { test } from "node:test";
import * as fc from "fast-check";
import type { MetricName, MetricStore, SeriesFilter, SeriesKey } from "@galatea/base/metrics";
import { UpkeepClock } from "./upkeep-clock.ts";

export interface MetricStoreOptions {
  readonly clock: UpkeepClock;
  readonly seriesMax: number;
  readonly isWritableByClients: (namespace: string) => boolean;
}

/** An implementation under test, without metrics at first. */
export interface MetricStoreSubject extends AsyncDisposable {
  readonly metrics: MetricStore;
}

export interface DurableMetricsOptions extends MetricStoreOptions {
  /** Approximate number of points in one write. */
  readonly pointsPerWrite: number;
  /** Called before each write. If it returns false, the write fails as on a full disk. */
  readonly mayWrite: () => boolean;
}

export interface DurableMetricsSubject extends MetricStoreSubject {
  /** Disposes the metrics and opens them again. */
  restart(): Promise<MetricStore>;
  /** Simulates `kill -9`, and opens the metrics that are on disk. */
  kill(): Promise<MetricStore>;
}

const second = 1000;
const minute = 60_000;
const hour = 60 * minute;
const day = 24 * hour;
const start = Date.UTC(2026, 10, 21, 12);
/** Milliseconds after the end of a minute at which the store has written the minute. */
const afterMinuteMs = 250;

const named = (metricName: string, namespace = "AWS/SageMaker"): SeriesKey => ({
  namespace,
  metricName,
  dimensions: [
    { name: "VariantName", value: "v" },
    { name: "EndpointName", value: "e" },
  ],
  unit: "Microseconds",
});
const latency = named("ModelLatency");
const everything: SeriesFilter = { namespace: null, metricName: null, dimensions: [], recordedSinceMs: null };

/** Returns the offset from `start` in ms, number of samples, sum, minimum and maximum of each period. */
async function statistics(metrics: MetricStore, key: SeriesKey, periodMs = minute): Promise<readonly number[][]> {
  const query = { startMs: start - 600 * day, endMs: start + 600 * day, periodMs, unit: key.unit };
  const points = await metrics.query(key, query);
  return points.map((each) => [each.startMs - start, each.sampleCount, each.sum, each.minimum, each.maximum]);
}

async function listed(metrics: MetricStore, filter: Partial<SeriesFilter> = {}): Promise<readonly string[]> {
  const found: MetricName[] = [];
  for await (const batch of metrics.list({ ...everything, ...filter })) found.push(...batch);
  return found.map(({ namespace, metricName }) => `${namespace} ${metricName}`).toSorted();
}

const put = (metrics: MetricStore, key: SeriesKey, timestampMs: number, value = 1) =>
  metrics.record(key, { value, count: 1 }, { timestampMs, resolutionMs: minute });

/** Samples by series and minute. The values are integers, so that sums are exact. */
const samples = fc.array(
  fc.record({
    metric: fc.integer({ min: 0, max: 4 }),
    minute: fc.integer({ min: 0, max: 2 }),
    value: fc.integer({ min: -(2 ** 40), max: 2 ** 40 }),
    count: fc.integer({ min: 1, max: 5 }),
    isSet: fc.boolean(),
  }),
  { minLength: 1, maxLength: 40 },
);
type Sample = typeof samples extends fc.Arbitrary<readonly (infer Each)[]> ? Each : never;

function putSample(
  metrics: MetricStore,
  { metric, minute: index, value, count, isSet }: Sample,
  namespace?: string,
): void {
  const key = named(`m${metric}`, namespace);
  const options = { timestampMs: start + index * minute, resolutionMs: minute } as const;
  const set = { sampleCount: count, sum: value * count, minimum: value, maximum: value };
  if (isSet) metrics.recordSet(key, set, options);
  else metrics.record(key, { value, count }, options);
}

/** Returns the expected result of `statistics` after these samples. */
function expected(all: readonly Sample[], metric: number): readonly number[][] {
  return [0, 1, 2].flatMap((index) => {
    const own = all.filter((each) => each.metric === metric && each.minute === index);
    if (own.length === 0) return [];
    const values = own.map(({ value }) => value);
    const sum = own.reduce((total, { value, count }) => total + value * count, 0);
    const count = own.reduce((total, each) => total + each.count, 0);
    return [[index * minute, count, sum, Math.min(...values), Math.max(...values)]];
  });
}

/** Tests that every implementation of metrics must pass. */
export function metricStoreContract(
  name: string,
  open: (options: MetricStoreOptions) => Promise<MetricStoreSubject>,
): void {
  const opened = async (options: Partial<MetricStoreOptions> = {}) => {
    const clock = new UpkeepClock(start);
    const subject = await open({ clock, seriesMax: 10_000, isWritableByClients: () => false, ...options });
    return { clock, metrics: subject.metrics, [Symbol.asyncDispose]: () => subject[Symbol.asyncDispose]() };
  };

  test(`${name}: samples of one minute are one datapoint, for any order of dimensions`, async () => {
    await using at = await opened();
    const recorder = at.metrics.recorder(latency);
    for (const value of [100, 200, 300]) recorder.record(value);
    at.clock.ms += minute;
    recorder.record(50);
    const reversed = { ...latency, dimensions: latency.dimensions.toReversed() };
    const expectedMinutes = [
      [0, 3, 600, 100, 300],
      [minute, 1, 50, 50, 50],
    ];
    assert.deepEqual(await statistics(at.metrics, reversed), expectedMinutes);
    assert.deepEqual(await statistics(at.metrics, latency, 5 * minute), [[0, 4, 650, 50, 300]]);
    const other = { ...latency, dimensions: latency.dimensions.slice(1) };
    assert.deepEqual(await statistics(at.metrics, other), []);
  });

  test(`${name}: a query aligns periods to its start, and includes samples from its start to its end`, async () => {
    await using at = await opened();
    for (let index = 0; index < 6; index += 1) put(at.metrics, latency, start + index * minute, index);
    const query = { startMs: start + minute, endMs: start + 5 * minute, periodMs: 2 * minute, unit: null };
    const points = await at.metrics.query(latency, query);
    assert.deepEqual(
      points.map(({ startMs, sum }) => [startMs - start, sum]),
      [
        [minute, 3],
        [3 * minute, 7],
      ],
    );
  });

  test(`${name}: each unit is a separate series; a metric is listed once`, async () => {
    await using at = await opened();
    const none = { ...latency, unit: "None" };
    put(at.metrics, latency, start, 1);
    put(at.metrics, none, start, 2);
    assert.deepEqual(await statistics(at.metrics, none), [[0, 1, 2, 2, 2]]);
    const query = { startMs: start, endMs: start + minute, periodMs: minute, unit: null };
    const units = (await at.metrics.query(latency, query)).map(({ unit }) => unit);
    assert.deepEqual(units.toSorted(), ["Microseconds", "None"]);
    assert.deepEqual(await listed(at.metrics), ["AWS/SageMaker ModelLatency"]);
  });

  test(`${name}: percentiles are within 1.5 %, and missing where only statistics were put`, async () => {
    await using at = await opened();
    const recorder = at.metrics.recorder(latency);
    for (let value = 1; value <= 1000; value += 1) recorder.record(value);
    const query = { startMs: start, endMs: start + minute, periodMs: minute, unit: null };
    const read = async () => (await at.metrics.query(latency, query))[0]?.percentile(0.9) ?? null;
    assert.ok(Math.abs(((await read()) ?? 0) - 900) <= 13.5);
    const set = { sampleCount: 2, sum: 3, minimum: 1, maximum: 2 };
    at.metrics.recordSet(latency, set, { timestampMs: start, resolutionMs: minute });
    assert.equal(await read(), null);
    assert.deepEqual(await statistics(at.metrics, latency), [[0, 1002, 500_503, 1, 1000]]);
  });

  test(`${name}: points have a period of ten seconds if the series or the query requests it`, async () => {
    await using at = await opened();
    const fine = at.metrics.recorder(named("fine"), 10_000);
    const coarse = at.metrics.recorder(named("coarse"));
    coarse.record(0);
    at.metrics.refine(named("coarse"), start + 2 * minute);
    for (let index = 0; index < 24; index += 1, at.clock.ms += 10 * second) {
      if (index < 2) fine.record(index);
      coarse.record(1);
    }
    assert.deepEqual(await statistics(at.metrics, named("fine"), 10 * second), [
      [0, 1, 0, 0, 0],
      [10 * second, 1, 1, 1, 1],
    ]);
    const refined = await statistics(at.metrics, named("coarse"), 10 * second);
    assert.deepEqual(
      refined.map(([since]) => since),
      [6, 7, 8, 9, 10, 11].map((index) => index * 10 * second),
    );
    const counts = (await statistics(at.metrics, named("coarse"))).map(([, count]) => count);
    assert.deepEqual(counts, [7, 6, 6, 6]);
  });

  test(`${name}: a recorder without samples creates no metric`, async () => {
    await using at = await opened({ seriesMax: 3 });
    at.metrics.recorder(latency).record(1);
    const idle = Array.from({ length: 10 }, (_, index) => at.metrics.recorder(named(`m${index}`)));
    assert.deepEqual(await listed(at.metrics), ["AWS/SageMaker ModelLatency"]);
    idle[0]?.record(1);
    assert.deepEqual(await listed(at.metrics), ["AWS/SageMaker ModelLatency", "AWS/SageMaker m0"]);
  });

  test(`${name}: a listing has the metrics that its filter matches`, async () => {
    await using at = await opened();
    put(at.metrics, latency, start);
    put(at.metrics, { ...named("ModelLatency", "mine"), dimensions: [] }, start);
    at.clock.ms += hour;
    put(at.metrics, named("Invocations"), at.clock.ms);
    const [own, mine, later] = ["AWS/SageMaker ModelLatency", "mine ModelLatency", "AWS/SageMaker Invocations"];
    const dimension = (name: string, value: string | null) => ({ dimensions: [{ name, value }] });
    assert.deepEqual(await listed(at.metrics), [later, own, mine]);
    assert.deepEqual(await listed(at.metrics, { namespace: "mine" }), [mine]);
    assert.deepEqual(await listed(at.metrics, { metricName: "ModelLatency" }), [own, mine]);
    assert.deepEqual(await listed(at.metrics, { recordedSinceMs: start + 1 }), [later]);
    assert.deepEqual(await listed(at.metrics, dimension("EndpointName", null)), [later, own]);
    assert.deepEqual(await listed(at.metrics, dimension("EndpointName", "e")), [later, own]);
    assert.deepEqual(await listed(at.metrics, dimension("EndpointName", "f")), []);
    assert.deepEqual(await listed(at.metrics, dimension("TargetModel", null)), []);
  });

  test(`${name}: a listing has limited batches; a metric that exists throughout is listed once`, async () => {
    await using at = await opened({ seriesMax: 3000 });
    for (let index = 0; index < 2500; index += 1) put(at.metrics, named(`m${index}`), start);
    const found: string[] = [];
    let batchCount = 0;
    for await (const batch of at.metrics.list(everything)) {
      assert.ok(batch.length <= 1000, `${batch.length} metrics in a batch`);
      found.push(...batch.map(({ metricName }) => metricName));
      for (let index = 0; index < 20; index += 1) put(at.metrics, named(`new${batchCount} ${index}`), start);
      batchCount += 1;
    }
    assert.ok(batchCount < 30, `${batchCount} batches`);
    assert.equal(found.filter((each) => each.startsWith("m")).length, 2500);
    assert.equal(new Set(found).size, found.length);
  });

  test(`${name}: old points are merged and finally deleted; samples that are too old are ignored`, async () => {
    await using at = await opened();
    const fine = { timestampMs: start, resolutionMs: 10_000 } as const;
    for (let index = 0; index < 60; index += 1)
      at.metrics.record(latency, { value: index, count: 1 }, { ...fine, timestampMs: start + index * 10 * second });
    const passed = async (sinceMs: number) => {
      await at.clock.passTo(start + sinceMs);
      put(at.metrics, named("other"), at.clock.ms);
    };
    const countsOf = async (periodMs: number) =>
      (await statistics(at.metrics, latency, periodMs)).map(([, count]) => count);
    assert.equal((await countsOf(10 * second)).length, 60);
    await passed(4 * hour);
    assert.deepEqual(await countsOf(10 * second), []);
    assert.deepEqual(
      await countsOf(minute),
      Array.from({ length: 10 }, () => 6),
    );
    await passed(16 * day);
    assert.deepEqual(await countsOf(minute), []);
    assert.deepEqual(await countsOf(5 * minute), [30, 30]);
    await passed(64 * day);
    assert.deepEqual(await countsOf(5 * minute), []);
    assert.deepEqual(await statistics(at.metrics, latency, hour), [[0, 60, 1770, 0, 59]]);
    await passed(456 * day);
    assert.deepEqual(await countsOf(hour), []);
    put(at.metrics, latency, start);
    assert.deepEqual(await countsOf(hour), []);
    assert.deepEqual(await listed(at.metrics, { metricName: "ModelLatency" }), []);
  });

  test(`${name}: the number of series is limited: the least recently recorded are evicted, and their recorders start new ones`, async () => {
    await using at = await opened({ seriesMax: 3 });
    const recorder = at.metrics.recorder(latency);
    recorder.record(1);
    for (let index = 0; index < 10; index += 1) {
      at.clock.ms += second;
      at.metrics.recorder(named(`m${index}`)).record(1);
    }
    assert.deepEqual(
      await listed(at.metrics),
      [7, 8, 9].map((index) => `AWS/SageMaker m${index}`),
    );
    recorder.record(2);
    assert.deepEqual(await statistics(at.metrics, latency), [[0, 1, 2, 2, 2]]);
  });

  test(`${name}: a client that creates many series evicts other clients' series, and none of the platform's`, async () => {
    await using at = await opened({
      seriesMax: 200,
      isWritableByClients: (namespace) => namespace !== latency.namespace,
    });
    for (let index = 0; index < 50; index += 1) put(at.metrics, named(`own${index}`), at.clock.ms);
    for (let index = 0; index < 2000; index += 1) {
      at.clock.ms += 1;
      put(at.metrics, named(`flood${index}`, `N${index % 7}`), at.clock.ms);
    }
    const names = await listed(at.metrics);
    assert.equal(names.filter((each) => each.startsWith("AWS/SageMaker own")).length, 50);
    assert.ok(names.length <= 200 && names.some((each) => each.endsWith(" flood1999")));
  });

  test(`${name}: sums are exact for any order of samples`, async () => {
    await using at = await opened();
    at.clock.ms = start + 3 * minute;
    let run = 0;
    await fc.assert(
      fc.asyncProperty(samples, fc.infiniteStream(fc.nat()), async (all, random) => {
        const namespace = `run ${(run += 1)}`;
        const shuffled = all
          .map((each) => [random.next().value as number, each] as const)
          .toSorted(([a], [b]) => a - b)
          .map(([, each]) => each);
        for (const each of shuffled) putSample(at.metrics, each, namespace);
        for (let metric = 0; metric < 5; metric += 1)
          assert.deepEqual(await statistics(at.metrics, named(`m${metric}`, namespace)), expected(all, metric));
      }),
    );
  });
}

/** Additional tests for metrics that are stored on disk. */
export function durableMetricsContract(
  name: string,
  open: (options: DurableMetricsOptions) => Promise<DurableMetricsSubject>,
): void {
  const opened = async (options: Partial<DurableMetricsOptions> = {}) => {
    const clock = new UpkeepClock(start);
    const defaults = {
      clock,
      seriesMax: 10_000,
      isWritableByClients: () => false,
      pointsPerWrite: 10,
      mayWrite: () => true,
    };
    const subject = await open({ ...defaults, ...options });
    return { clock, subject, [Symbol.asyncDispose]: () => subject[Symbol.asyncDispose]() };
  };
  const endOfMinute = (index: number) => start + (index + 1) * minute + afterMinuteMs;

  test(`${name}: after a stop all points are stored, including the current minute, which continues`, async () => {
    await using at = await opened();
    const recorder = at.subject.metrics.recorder(latency);
    for (let value = 1; value <= 100; value += 1) recorder.record(value);
    await at.clock.passTo(endOfMinute(0));
    recorder.record(7);
    const again = await at.subject.restart();
    const query = { startMs: start, endMs: start + minute, periodMs: minute, unit: null };
    const [first] = await again.query(latency, query);
    assert.ok(Math.abs((first?.percentile(0.9) ?? 0) - 90) < 1.5);
    again.recorder(latency).record(8);
    const both = [
      [0, 100, 5050, 1, 100],
      [minute, 2, 15, 7, 8],
    ];
    assert.deepEqual(await statistics(again, latency), both);
    const third = await at.subject.restart();
    assert.deepEqual(await statistics(third, latency), both);
    assert.deepEqual(await listed(third), ["AWS/SageMaker ModelLatency"]);
  });

  test(`${name}: after a kill all complete minutes are stored, and the current one is lost`, async () => {
    await using at = await opened();
    const recorder = at.subject.metrics.recorder(latency);
    recorder.record(1);
    await at.clock.passTo(endOfMinute(0));
    recorder.record(2);
    const again = await at.subject.kill();
    assert.deepEqual(await statistics(again, latency), [[0, 1, 1, 1, 1]]);
  });

  test(`${name}: points that the disk rejects can be read, and are written once it accepts them`, async () => {
    let isFull = true;
    await using at = await opened({ mayWrite: () => !isFull });
    put(at.subject.metrics, latency, start, 1);
    await at.clock.passTo(endOfMinute(0));
    assert.deepEqual(await statistics(at.subject.metrics, latency), [[0, 1, 1, 1, 1]]);
    isFull = false;
    put(at.subject.metrics, latency, at.clock.ms, 2);
    await at.clock.passTo(endOfMinute(1));
    const again = await at.subject.kill();
    const both = [
      [0, 1, 1, 1, 1],
      [minute, 1, 2, 2, 2],
    ];
    assert.deepEqual(await statistics(again, latency), both);
  });

  test(`${name}: old points are merged on disk too, once`, async () => {
    await using at = await opened();
    for (let index = 0; index < 5; index += 1) {
      put(at.subject.metrics, latency, at.clock.ms, index);
      await at.clock.passTo(endOfMinute(index));
    }
    await at.clock.passTo(start + 16 * day);
    const again = await at.subject.kill();
    assert.deepEqual(await statistics(again, latency), []);
    assert.deepEqual(await statistics(again, latency, 5 * minute), [[0, 5, 10, 0, 4]]);
    await at.clock.passTo(start + 600 * day);
    assert.deepEqual(await listed(await at.subject.kill()), []);
  });

  test(`${name}: an evicted metric that starts anew has none of its earlier samples after a kill`, async () => {
    await using at = await opened({ seriesMax: 1 });
    const minutes = [latency, named("other"), latency];
    for (const [index, key] of minutes.entries()) {
      put(at.subject.metrics, key, at.clock.ms, index);
      await at.clock.passTo(endOfMinute(index));
    }
    const again = await at.subject.kill();
    assert.deepEqual(await listed(again), ["AWS/SageMaker ModelLatency"]);
    assert.deepEqual(await statistics(again, latency), [[2 * minute, 1, 2, 2, 2]]);
  });

  test(`${name}: a kill between two batches loses at most unwritten points; stored points are exact`, async () => {
    await fc.assert(
      fc.asyncProperty(samples, fc.nat({ max: 15 }), async (all, writesMax) => {
        let writeCount = 0;
        await using at = await opened({ pointsPerWrite: 1, mayWrite: () => (writeCount += 1) <= writesMax });
        for (let index = 0; index < 3; index += 1) {
          for (const each of all.filter((one) => one.minute === index)) putSample(at.subject.metrics, each);
          await at.clock.passTo(endOfMinute(index));
        }
        const again = await at.subject.kill();
        let [foundCount, allCount] = [0, 0];
        for (let metric = 0; metric < 5; metric += 1) {
          const points = expected(all, metric);
          const found = await statistics(again, named(`m${metric}`));
          const times = new Set(found.map(([since]) => since));
          assert.deepEqual(
            found,
            points.filter(([since]) => times.has(since)),
          );
          foundCount += found.length;
          allCount += points.length;
        }
        assert.ok(
          foundCount >= Math.min(writesMax, allCount),
          `${foundCount} of ${allCount} after ${writesMax} writes`,
        );
      }),
      { numRuns: 10 },
    );
  });
}
