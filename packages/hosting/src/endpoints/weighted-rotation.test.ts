import assert from "node:assert/strict";
import { test } from "node:test";
import * as fc from "fast-check";
import { WeightedRotation } from "./weighted-rotation.ts";

const weightsOf = (minLength: number, maxLength: number) =>
  fc.array(fc.oneof(fc.integer({ min: 0, max: 1000 }), fc.double({ min: 0.001, max: 10, noNaN: true })), {
    minLength,
    maxLength,
  });

/** Returns the index of the chosen item for each request. */
function sequence(weights: readonly number[], length: number): (number | undefined)[] {
  const rotation = new WeightedRotation(weights.map((weight, index) => ({ weight, index })));
  return Array.from({ length }, () => rotation.next()?.index);
}

test("property: after any number of requests each of up to twenty items is within one request of its share", () => {
  fc.assert(
    fc.property(weightsOf(1, 20), fc.integer({ min: 1, max: 600 }), (weights, length) => {
      const total = weights.reduce((sum, weight) => sum + weight, 0);
      const counts = weights.map(() => 0);
      for (const [before, index] of sequence(weights, length).entries()) {
        if (total === 0) return assert.equal(index, undefined);
        assert.ok(index !== undefined);
        counts[index] = (counts[index] ?? 0) + 1;
        for (const [which, weight] of weights.entries()) {
          const error = Math.abs((counts[which] ?? 0) - ((before + 1) * weight) / total);
          assert.ok(error < 1, `${which} of ${weights.join()} is off by ${error} after ${before + 1}`);
        }
      }
    }),
  );
});

test("property: in any window of requests each item is within two requests of its share, and of two items within one", () => {
  fc.assert(
    fc.property(weightsOf(2, 10), (weights) => {
      const total = weights.reduce((sum, weight) => sum + weight, 0);
      fc.pre(total > 0);
      const chosen = sequence(weights, 120);
      const bound = weights.filter((weight) => weight > 0).length === 2 ? 1 : 2;
      for (const [which, weight] of weights.entries()) {
        for (let from = 0; from < chosen.length; from += 1) {
          let count = 0;
          for (let to = from; to < chosen.length; to += 1) {
            if (chosen[to] === which) count += 1;
            const error = Math.abs(count - ((to - from + 1) * weight) / total);
            assert.ok(error < bound + 1e-6, `${which} of ${weights.join()} is off by ${error} in ${from}-${to}`);
          }
        }
      }
    }),
    { numRuns: 50 },
  );
});

test("an item of weight zero gets no requests", () => {
  assert.deepEqual(new Set(sequence([1, 0, 3], 100)), new Set([0, 2]));
  assert.equal(new WeightedRotation([{ weight: 0 }]).next(), null);
});

/**
 * Returns the difference between each item's number of requests and its share of them. The difference is computed with
 * integers before the division, so that rounding errors do not accumulate.
 */
function errorsOf(weights: readonly number[], requestCount: number): readonly number[] {
  const total = weights.reduce((sum, weight) => sum + weight, 0);
  const rotation = new WeightedRotation(weights.map((weight, index) => ({ weight, index })));
  const counts = weights.map(() => 0);
  for (let request = 0; request < requestCount; request += 1) {
    const index = rotation.next()?.index ?? -1;
    counts[index] = (counts[index] ?? 0) + 1;
  }
  return weights.map((weight, index) => ((counts[index] ?? 0) * total - requestCount * weight) / total);
}

test("after ten million requests each item is still within one request of its share", () => {
  for (const error of errorsOf([3, 7, 1], 10_000_000)) assert.ok(Math.abs(error) < 1, `off by ${error}`);
  const unequal = errorsOf([1, 999_983], 3_000_000);
  for (const error of unequal) assert.ok(Math.abs(error) < 1, `off by ${error}`);
});

test("property: extreme weights do not starve an item, and invalid weights get no requests", () => {
  assert.deepEqual(sequence([1e308, 1e308, 1], 4), [0, 1, 0, 1]);
  assert.deepEqual(new Set(sequence([5e-324, 5e-324], 10)), new Set([0, 1]));
  assert.deepEqual(new Set(sequence([5e-324, 1e308], 1000)), new Set([1]));
  assert.deepEqual(sequence([Number.NaN, -1, 1], 3), [2, 2, 2]);
  const weight = fc.oneof(fc.constant(0), fc.double({ min: 5e-324, max: 3.4e38, noNaN: true }));
  fc.assert(
    fc.property(
      fc.array(weight, { minLength: 1, maxLength: 10 }),
      fc.integer({ min: 1, max: 300 }),
      (weights, length) => {
        const largest = Math.max(...weights);
        fc.pre(largest > 0);
        const total = weights.reduce((sum, each) => sum + each / largest, 0);
        const chosen = sequence(weights, length);
        for (const [which, each] of weights.entries()) {
          const count = chosen.filter((index) => index === which).length;
          const error = Math.abs(count - (length * (each / largest)) / total);
          assert.ok(error < 1 + 1e-9, `${which} of ${weights.join()} is off by ${error} after ${length}`);
        }
      },
    ),
  );
});
