import assert from "node:assert/strict";
import { test } from "node:test";
import * as fc from "fast-check";
import { newTree } from "./forest.ts";
import { categoryBounds, type Comparison, splitByThreshold } from "./splits.ts";

const comparisons: Readonly<Record<Comparison, (value: number, threshold: number) => boolean>> = {
  "<": (value, threshold) => value < threshold,
  "<=": (value, threshold) => value <= threshold,
  ">": (value, threshold) => value > threshold,
  ">=": (value, threshold) => value >= threshold,
  "==": (value, threshold) => value === threshold,
};

/** The child that a value goes to: 1 where the comparison is true, 2 where it is not. */
function decided(comparison: Comparison, threshold: number, value: number): number {
  const tree = newTree(3, 0);
  splitByThreshold(tree, 0, { feature: 0, whenTrue: 1, whenFalse: 2, missingTrue: true, comparison, threshold });
  const bounds = tree.steps.get(0);
  const passed = bounds?.findIndex((bound) => value < bound) ?? 0;
  const isLeft =
    bounds === undefined ? value < (tree.thresholds[0] as number) : (passed === -1 ? bounds.length : passed) % 2 === 1;
  return (isLeft ? tree.left[0] : tree.right[0]) as number;
}

test("a threshold of double precision decides every float32 as it did", () => {
  const float = fc.float({ noNaN: true });
  const doubles = fc.oneof(fc.double({ noNaN: true }), float);
  fc.assert(
    fc.property(
      doubles,
      fc.constantFrom(...(Object.keys(comparisons) as Comparison[])),
      float,
      (threshold, comparison, other) => {
        // What lies next to the threshold tells more than what lies anywhere.
        for (const value of [
          Math.fround(threshold),
          Math.fround(threshold * (1 + 1e-7)),
          Math.fround(threshold * (1 - 1e-7)),
          other,
        ]) {
          assert.equal(decided(comparison, threshold, value), comparisons[comparison](value, threshold) ? 1 : 2);
        }
      },
    ),
    { numRuns: 2000 },
  );
});

test("missing values go where the split says, whichever way round it is written", () => {
  for (const comparison of Object.keys(comparisons) as Comparison[]) {
    for (const missingTrue of [true, false]) {
      const tree = newTree(3, 0);
      splitByThreshold(tree, 0, { feature: 0, whenTrue: 1, whenFalse: 2, missingTrue, comparison, threshold: 0.5 });
      assert.equal(tree.missingLeft[0] === 1 ? tree.left[0] : tree.right[0], missingTrue ? 1 : 2, comparison);
    }
  }
});

test("categories that follow one another are one range, and category 0 begins at 0 or above -1", () => {
  const bounds = (zeroReachesDown: boolean) => [
    ...categoryBounds([0, 1, 4, 4, 7, 8], { about: "it", zeroReachesDown }),
  ];
  assert.deepEqual(bounds(false), [0, 2, 4, 5, 7, 9]);
  assert.deepEqual(bounds(true), [Math.fround(-1 + 2 ** -24), 2, 4, 5, 7, 9]);
});

test("a set of too many ranges is refused by name", () => {
  const odd = Array.from({ length: 4097 }, (_, index) => 2 * index);
  assert.throws(() => categoryBounds(odd, { about: "node 3 of tree 5", zeroReachesDown: false }), {
    code: "UNSUPPORTED",
    message: "node 3 of tree 5 needs more than 4096 ranges of categories",
  });
});
