import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import * as fc from "fast-check";
import { seededRandom } from "../../conformance/seeded-random.ts";
import { playArrivals, rankBands, weightedQuantile, zipfArrivals, zipfShares } from "./arrivals.ts";

test("arrivals have the rate, the order and the shares of their models", () => {
  const arrivals = zipfArrivals({ perSecond: 200, durationMs: 100_000, modelCount: 100, random: seededRandom(1) });
  assert.ok(Math.abs(arrivals.length - 20_000) < 600, String(arrivals.length));
  assert.ok(arrivals.every(({ atMs }, index) => atMs < 100_000 && atMs > (arrivals[index - 1]?.atMs ?? 0)));
  const shares = zipfShares(100);
  for (const model of [0, 1, 9]) {
    const share = arrivals.filter((each) => each.model === model).length / arrivals.length;
    assert.ok(Math.abs(share / (shares[model] ?? 0) - 1) < 0.15, `${model}: ${share}`);
  }
  assert.ok(Math.abs(shares.reduce((sum, share) => sum + share, 0) - 1) < 1e-9);
});

test("bands cover every rank once, with distinct samples inside each", () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 3000 }), fc.integer({ min: 1, max: 10 }), (modelCount, samples) => {
      const bands = rankBands(modelCount, () => samples);
      let next = 0;
      for (const { first, end, sampled } of bands) {
        assert.equal(first, next);
        assert.equal(new Set(sampled).size, Math.min(samples, end - first));
        assert.ok(sampled.every((rank) => rank >= first && rank < end));
        next = end;
      }
      assert.equal(next, modelCount);
    }),
  );
  const widths = rankBands(1000, () => 1).map(({ first, end }) => end - first);
  assert.deepEqual(widths, [1, 2, 4, 8, 16, 32, 64, 128, 256, 489]);
});

test("a slow response delays no later request", async () => {
  const sent: number[] = [];
  const first = Promise.withResolvers<void>();
  const played = playArrivals(
    [0, 1, 2].map((model) => ({ atMs: model, model })),
    async (model) => {
      sent.push(model);
      if (model === 0) await first.promise;
      return model;
    },
  );
  while (sent.length < 3) await delay(1);
  first.resolve();
  assert.deepEqual(await played, [0, 1, 2]);
});

test("a request that fails ends the load", async () => {
  const sent: number[] = [];
  const played = playArrivals(
    [0, 1, 2, 3].map((model) => ({ atMs: 50 * model, model })),
    async (model) => {
      sent.push(model);
      if (model === 1) throw new Error("refused");
    },
  );
  await assert.rejects(played, /refused/);
  assert.deepEqual(sent, [0, 1]);
});

test("a quantile counts each value with its weight", () => {
  const values = [
    { value: 5, weight: 1 },
    { value: 1, weight: 98 },
    { value: 9, weight: 1 },
  ];
  assert.equal(weightedQuantile(values, 0.5), 1);
  assert.equal(weightedQuantile(values, 0.99), 5);
  assert.equal(weightedQuantile(values, 1), 9);
  assert.ok(Number.isNaN(weightedQuantile([], 0.5)));
});
