import assert from "node:assert/strict";
import { test } from "node:test";
import * as fc from "fast-check";
import { type Forest, newTree, newVectorTree, type Tree } from "../forest.ts";
import { compactForest } from "./compact-forest.ts";
import { compileTraversal, Evaluator } from "./evaluator.ts";

const walk = compileTraversal();
const featureCount = 4;

/**
 * Generates a random tree in which the cover of a node is the sum of its children's covers; `next` returns a number
 * below its argument.
 */
function plant(next: (below: number) => number, outputCount: number): Tree {
  const splitCount = next(10);
  const nodeCount = 2 * splitCount + 1;
  const hasVectors = outputCount > 1 && next(2) === 0;
  const tree = hasVectors
    ? newVectorTree(
        nodeCount,
        Float64Array.from({ length: nodeCount * outputCount }, () => next(100)),
      )
    : newTree(nodeCount, next(outputCount));
  const leaves = [0];
  const splits: number[] = [];
  for (let end = 1; end < nodeCount; end += 2) {
    const [node] = leaves.splice(next(leaves.length), 1) as [number];
    [tree.left[node], tree.right[node]] = [end, end + 1];
    leaves.push(end, end + 1);
    splits.push(node);
    tree.features[node] = next(featureCount);
    tree.missingLeft[node] = next(2);
    tree.thresholds[node] = next(5);
  }
  const covers = new Float64Array(nodeCount);
  for (const leaf of leaves) {
    covers[leaf] = 1 + next(20);
    tree.right[leaf] = hasVectors ? leaf * outputCount : leaf;
    if (!hasVectors) tree.leafWeights[leaf] = next(100);
  }
  for (const node of splits.toReversed()) covers[node] = covers[tree.left[node]!]! + covers[tree.right[node]!]!;
  return { ...tree, covers };
}

/** Returns the average result of a tree if only the features in the bit set `known` have the values of the row. */
function average(tree: Tree, row: readonly number[], known: number, output: number, node = 0): number {
  const [left, right] = [tree.left[node] as number, tree.right[node] as number];
  if (left === -1) {
    if (tree.target !== "every") return tree.target === output ? (tree.leafWeights[right] as number) : 0;
    return tree.leafWeights[right + output] as number;
  }
  const feature = tree.features[node] as number;
  const below = (child: number) => average(tree, row, known, output, child);
  if ((known & (1 << feature)) !== 0) {
    const value = row[feature] as number;
    const isLeft = Number.isNaN(value) ? tree.missingLeft[node] === 1 : value < (tree.thresholds[node] as number);
    return below(isLeft ? left : right);
  }
  const covers = tree.covers!;
  return (covers[left]! * below(left) + covers[right]! * below(right)) / covers[node]!;
}

const bitsOf = (set: number) => set.toString(2).replaceAll("0", "").length;
const factorial = (count: number): number => (count <= 1 ? 1 : count * factorial(count - 1));

/** Computes Shapley values by definition, as a sum over all sets of features. */
function shapley({ trees, baseScores }: Forest, row: readonly number[], output: number): readonly number[] {
  const value = (known: number) => trees.reduce((sum, tree) => sum + average(tree, row, known, output), 0);
  const shares = Array.from({ length: featureCount }, (_, feature) => {
    let share = 0;
    for (let known = 0; known < 1 << featureCount; known += 1) {
      if ((known & (1 << feature)) !== 0) continue;
      const size = bitsOf(known);
      const weight = (factorial(size) * factorial(featureCount - size - 1)) / factorial(featureCount);
      share += weight * (value(known | (1 << feature)) - value(known));
    }
    return share;
  });
  return [...shares, (baseScores[output] as number) + value(0)];
}

test("contributions equal Shapley values computed by their definition", () => {
  const draws = fc.array(fc.nat(1 << 20), { minLength: 300, maxLength: 300 });
  fc.assert(
    fc.property(
      draws,
      fc.integer({ min: 1, max: 4 }),
      fc.integer({ min: 1, max: 2 }),
      (drawn, treeCount, outputCount) => {
        let at = 0;
        const next = (below: number) => (drawn[at++ % drawn.length] as number) % below;
        const forest: Forest = {
          precision: "float64",
          featureCount,
          outputCount,
          trees: Array.from({ length: treeCount }, () => plant(next, outputCount)),
          baseScores: Array.from({ length: outputCount }, () => next(10)),
          transform: { kind: "sigmoid", alpha: 1 },
        };
        const rowCount = 11;
        const rows = Array.from({ length: rowCount }, () =>
          Array.from({ length: featureCount }, () => [Number.NaN, 0, 0.5, 1.5, 2, 3, 4.5][next(7)] as number),
        );
        const model = {
          forest: compactForest(forest, { workspaceCount: 1, explains: true }),
          outputForm: { kind: "scores" },
        } as const;
        const contributions = new Float32Array(rowCount * outputCount * (featureCount + 1));
        const bits = new Int32Array(Float32Array.from(rows.flat()).buffer);
        new Evaluator(walk, model, 0).evaluate({ rows: bits, rowCount, predictions: null, contributions });
        const expected = rows.flatMap((row) =>
          Array.from({ length: outputCount }, (_, output) => shapley(forest, row, output)).flat(),
        );
        for (const [index, value] of expected.entries())
          assert.ok(Math.abs(contributions[index]! - value) < 1e-3, `${contributions[index]} for ${value} at ${index}`);
      },
    ),
    { numRuns: 100 },
  );
});

test("contributions are rejected for trees with range splits, for linear leaves, and when a row would take minutes", () => {
  const forest = (tree: Tree): Forest => ({
    precision: "float64",
    featureCount,
    outputCount: 1,
    trees: Array.from({ length: 5 }, () => tree),
    baseScores: [0],
    transform: { kind: "identity" },
  });
  const stepped = newTree(3, 0);
  [stepped.left[0], stepped.right[0]] = [1, 2];
  stepped.steps.set(0, Float32Array.of(1, 2));
  const explain = (tree: Tree) => () => compactForest(forest(tree), { workspaceCount: 1, explains: true });
  assert.throws(explain(stepped), { code: "UNSUPPORTED", message: /^tree 0 splits by category/ });
  const linear = { constants: new Float64Array(1), begins: new Int32Array(2), features: new Int32Array(0) };
  const withTerms = { ...newTree(1, 0), linear: { ...linear, coefficients: new Float64Array(0) } };
  assert.throws(explain(withTerms), { code: "UNSUPPORTED", message: /^tree 0 has linear models at its leaves/ });
  const deep = newTree(2001, 0);
  for (let node = 0; node < 2000; node += 2) [deep.left[node], deep.right[node]] = [node + 1, node + 2];
  assert.throws(explain(deep), { code: "UNSUPPORTED", message: /^treeshap_output would take \d+ steps for each row/ });
});
