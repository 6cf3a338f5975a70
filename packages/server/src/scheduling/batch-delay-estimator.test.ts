import assert from "node:assert/strict";
import { test } from "node:test";
import * as fc from "fast-check";
import { BatchDelayEstimator } from "./batch-delay-estimator.ts";

const ms = 1e6;

interface Loop {
  readonly clientCount: number;
  /** Returns the duration of an execution of this many requests. */
  readonly costMs: (requestCount: number) => number;
  /** Returns the time from the end of a batch until all of its clients have sent again. */
  readonly returnMs: (requestCount: number) => number;
}

/**
 * Simulates clients that each send one request after another to one instance; the first client starts before the others. Returns the sizes
 * of the first batches and the longest time that the instance waited for requests.
 */
function simulate(
  loop: Loop,
  batchCount: number,
): { readonly sizes: readonly number[]; readonly longestWaitMs: number } {
  const estimator = new BatchDelayEstimator();
  const arrivals = Array.from({ length: loop.clientCount }, (_, client) => (client === 0 ? 0 : 1) * ms + client);
  const sizes: number[] = [];
  let nowNs = 0;
  let waiting = 0;
  let longestWaitMs = 0;
  let waitsSinceNs: number | null = null;
  const take = (): void => {
    arrivals.sort((a, b) => a - b);
    while (arrivals.length > 0 && (arrivals[0] as number) <= nowNs) {
      estimator.arrived(arrivals.shift() as number);
      waiting += 1;
    }
  };
  while (sizes.length < batchCount) {
    take();
    if (waiting === 0) {
      nowNs = arrivals[0] as number;
      continue;
    }
    const untilNs = estimator.waitUntilNs(nowNs);
    if (untilNs !== null) {
      waitsSinceNs ??= nowNs;
      nowNs = Math.min(untilNs, arrivals[0] ?? untilNs);
      continue;
    }
    if (waitsSinceNs !== null) longestWaitMs = Math.max(longestWaitMs, (nowNs - waitsSinceNs) / ms);
    waitsSinceNs = null;
    const requestCount = waiting;
    waiting = 0;
    sizes.push(requestCount);
    const startedNs = nowNs;
    nowNs += loop.costMs(requestCount) * ms;
    take();
    estimator.ended(requestCount, nowNs - startedNs, nowNs);
    const last = loop.returnMs(requestCount) * ms;
    for (let position = 1; position <= requestCount; position += 1)
      arrivals.push(nowNs + (last * position) / requestCount);
  }
  return { sizes, longestWaitMs };
}

test("two groups of clients that would alternate at an instance become one batch", () => {
  const { sizes } = simulate({ clientCount: 8, costMs: (n) => 2.5 + 0.4 * n, returnMs: (n) => 0.8 + 0.15 * n }, 200);
  assert.ok(sizes.slice(0, 10).includes(7), `the groups begin in separate batches: ${sizes.slice(0, 10).join(" ")}`);
  assert.deepEqual(new Set(sizes.slice(100)), new Set([8]));
});

test("no batch is delayed if it costs as much as its requests one by one", () => {
  assert.equal(simulate({ clientCount: 8, costMs: (n) => 0.8 * n, returnMs: () => 1 }, 200).longestWaitMs, 0);
});

test("property: no instance waits for longer than an execution's fixed cost", () => {
  const cost = {
    fixedMs: fc.double({ min: 0, max: 20, noNaN: true }),
    eachMs: fc.double({ min: 0.01, max: 5, noNaN: true }),
  };
  const delay = fc.double({ min: 0, max: 30, noNaN: true });
  fc.assert(
    fc.property(
      fc.record(cost),
      delay,
      fc.integer({ min: 1, max: 20 }),
      ({ fixedMs, eachMs }, returnMs, clientCount) => {
        const { longestWaitMs } = simulate(
          { clientCount, costMs: (n) => fixedMs + eachMs * n, returnMs: (n) => returnMs + 0.01 * n },
          100,
        );
        assert.ok(longestWaitMs <= fixedMs + 1e-6, `${longestWaitMs} of ${fixedMs} ms`);
      },
    ),
  );
});

test("clients that did not return are not waited for repeatedly", () => {
  const estimator = new BatchDelayEstimator();
  let nowNs = 0;
  for (const requestCount of [1, 4, 1, 4, 1, 4]) {
    nowNs += (2 + 0.5 * requestCount) * ms;
    estimator.ended(requestCount, (2 + 0.5 * requestCount) * ms, nowNs);
    nowNs += 0.8 * ms;
    for (let index = 0; index < requestCount; index += 1) estimator.arrived(nowNs);
  }
  let waits = 0;
  for (let round = 0; round < 20; round += 1) {
    estimator.ended(4, 4 * ms, nowNs);
    // A request of another client is queued. The four clients of the last batch never return.
    const untilNs = estimator.waitUntilNs(nowNs);
    if (untilNs !== null) {
      waits += 1;
      assert.ok(untilNs - nowNs <= 2 * ms);
      assert.equal(estimator.waitUntilNs(untilNs), null);
    }
    nowNs += 5 * ms;
  }
  assert.ok(waits >= 1 && waits <= 2, `${waits} waits`);
});

test("executions that failed do not lower the cost for which a batch waits", () => {
  const estimator = new BatchDelayEstimator();
  let nowNs = 0;
  for (let round = 0; round < 20; round += 1)
    for (const requestCount of [1, 4]) {
      nowNs += (2 + 0.5 * requestCount) * ms;
      estimator.ended(requestCount, (2 + 0.5 * requestCount) * ms, nowNs);
      nowNs += 0.8 * ms;
      for (let index = 0; index < requestCount; index += 1) estimator.arrived(nowNs);
      estimator.ended(requestCount, null, nowNs);
      nowNs += 0.8 * ms;
      for (let index = 0; index < requestCount; index += 1) estimator.arrived(nowNs);
    }
  estimator.ended(4, 4 * ms, nowNs);
  assert.notEqual(estimator.waitUntilNs(nowNs), null);
});
