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

/** Returns the child that a value goes to: 1 if the comparison is true, else 2. */
function decided(comparison: Comparison, threshold: number, value: number): number {
  const tree = newTree(3, 0);
  splitByThreshold(tree, 0, { feature: 0, whenTrue: 1, whenFalse: 2, missingTrue: true, comparison, threshold });
  const bounds = tree.steps.get(0);
  const passed = bounds?.findIndex((bound) => value < bound) ?? 0;
  const isLeft =
    bounds === undefined ? value < (tree.thresholds[0] as number) : (passed === -1 ? bounds.length : passed) % 2 === 1;
  return (isLeft ? tree.left[0] : tree.right[0]) as number;
}

test("a float64 threshold decides every float32 value as the original comparison does", () => {
  const float = fc.float({ noNaN: true });
  const doubles = fc.oneof(fc.double({ noNaN: true }), float);
  fc.assert(
    fc.property(
      doubles,
      fc.constantFrom(...(Object.keys(comparisons) as Comparison[])),
      float,
      (threshold, comparison, other) => {
        // Values next to the threshold are more likely to reveal an error than random ones.
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

test("missing values take the declared branch for every comparison operator", () => {
  for (const comparison of Object.keys(comparisons) as Comparison[]) {
    for (const missingTrue of [true, false]) {
      const tree = newTree(3, 0);
      splitByThreshold(tree, 0, { feature: 0, whenTrue: 1, whenFalse: 2, missingTrue, comparison, threshold: 0.5 });
      assert.equal(tree.missingLeft[0] === 1 ? tree.left[0] : tree.right[0], missingTrue ? 1 : 2, comparison);
    }
  }
});

test("consecutive categories are one range, and the range of category 0 begins at 0 or just above -1", () => {
  const bounds = (zeroReachesDown: boolean) => [
    ...categoryBounds([0, 1, 4, 4, 7, 8], { about: "it", zeroReachesDown }),
  ];
  assert.deepEqual(bounds(false), [0, 2, 4, 5, 7, 9]);
  assert.deepEqual(bounds(true), [Math.fround(-1 + 2 ** -24), 2, 4, 5, 7, 9]);
});

test("the error for a category set with too many ranges names the node", () => {
  const odd = Array.from({ length: 4097 }, (_, index) => 2 * index);
  assert.throws(() => categoryBounds(odd, { about: "node 3 of tree 5", zeroReachesDown: false }), {
    code: "UNSUPPORTED",
    message: "node 3 of tree 5 needs more than 4096 ranges of categories",
  });
});
