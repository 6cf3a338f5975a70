import assert from "node:assert/strict";
import { test } from "node:test";
import { judgeFlatness, medianSlope } from "./flatness.ts";

const descriptors = { name: "descriptors", unit: "", growthMax: 3 };

test("a series that grows by one each round is not flat, whatever its outliers are", () => {
  const rounds = Array.from({ length: 20 }, (_, round) => 50 + round + (round === 10 ? 500 : 0));
  const verdict = judgeFlatness(descriptors, rounds);
  assert.equal(verdict.isFlat, false);
  assert.ok(Math.abs(verdict.growth - 14) < 1);
});

test("a series that alternates around one value is flat", () => {
  const rounds = Array.from({ length: 20 }, (_, round) => 50 + (round % 2) * 10);
  assert.equal(judgeFlatness(descriptors, rounds).isFlat, true);
});

test("a series that grows during the warm-up only is flat", () => {
  const rounds = [10, 20, 30, 40, 50, ...Array.from({ length: 15 }, () => 55)];
  assert.equal(judgeFlatness(descriptors, rounds).isFlat, true);
});

test("a single value has a slope of 0", () => assert.equal(medianSlope([4]), 0));
