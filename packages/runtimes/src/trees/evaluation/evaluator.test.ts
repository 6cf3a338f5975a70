import assert from "node:assert/strict";
import { test } from "node:test";
import * as fc from "fast-check";
import { type Forest, type LinearLeaves, newTree, newVectorTree, type Tree } from "../forest.ts";
import { compactForest } from "./compact-forest.ts";
import { compileTraversal, Evaluator } from "./evaluator.ts";

const walk = compileTraversal();
const featureCount = 3;
/** Rows and thresholds are drawn from these values, so that many are equal. */
const values = [-Infinity, -3.5, -(2 ** -149), -0, 0, 2 ** -149, 1, 2.5, 2 ** 127, Infinity, Number.NaN];

/** Generates a random tree; `next` returns a number below its argument. */
function plant(next: (below: number) => number, outputCount: number): Tree {
  const splitCount = next(40);
  const hasSteps = next(2) === 0;
  const nodeCount = 2 * splitCount + 1;
  const hasVectors = outputCount > 1 && next(2) === 0;
  const tree = hasVectors
    ? newVectorTree(
        nodeCount,
        Float64Array.from({ length: nodeCount * outputCount }, () => next(100)),
      )
    : newTree(nodeCount, next(outputCount));
  const leaves = [0];
  let end = 1;
  for (let split = 0; split < splitCount; split += 1) {
    // The last leaf is often split, so that trees are deep.
    const [node] = leaves.splice(next(2) === 0 ? leaves.length - 1 : next(leaves.length), 1) as [number];
    [tree.left[node], tree.right[node]] = [end, end + 1];
    leaves.push(end, end + 1);
    end += 2;
    tree.features[node] = next(featureCount);
    tree.missingLeft[node] = next(2);
    tree.thresholds[node] = values[next(values.length)] as number;
    if (hasSteps && next(4) === 0) {
      const bounds = new Set(Array.from({ length: next(8) }, () => (values[next(9)] as number) + 0));
      tree.steps.set(node, Float32Array.from(bounds).sort());
    }
  }
  for (const leaf of leaves) {
    tree.right[leaf] = hasVectors ? leaf * outputCount : leaf;
    if (!hasVectors) tree.leafWeights[leaf] = next(100);
  }
  return hasVectors || next(3) > 0 ? tree : { ...tree, linear: plantTerms(tree, next) };
}

/** Generates up to five terms at each leaf, from numbers that add up without rounding. */
function plantTerms({ left }: Tree, next: (below: number) => number): LinearLeaves {
  const features: number[] = [];
  const begins = Int32Array.of(
    0,
    ...Array.from(left, (child) => {
      if (child === -1) features.push(...Array.from({ length: next(6) }, () => next(featureCount)));
      return features.length;
    }),
  );
  const coefficients = Float64Array.from(features, () => next(200) - 100);
  const constants = Float64Array.from(left, () => next(100) / 8);
  return { constants, begins, features: Int32Array.from(features), coefficients };
}

/** Returns the leaf of a row by following the definition in forest.ts, node by node. */
function leafOf(tree: Tree, row: readonly number[]): number {
  let node = 0;
  while (tree.left[node] !== -1) {
    const value = row[tree.features[node] as number] as number;
    const bounds = tree.steps.get(node);
    const isBelow = value < (tree.thresholds[node] as number);
    const isInStep = bounds !== undefined && bounds.filter((bound) => bound <= value).length % 2 === 1;
    const isLeft = Number.isNaN(value) ? tree.missingLeft[node] === 1 : bounds === undefined ? isBelow : isInStep;
    node = (isLeft ? tree.left[node] : tree.right[node]) as number;
  }
  return node;
}

/** Returns the numbers that a leaf adds, in order: their magnitudes differ so much that another order changes the sum. */
function termsOf({ linear, leafWeights, right }: Tree, leaf: number, row: readonly number[]): readonly number[] {
  if (linear === null) return [leafWeights[right[leaf] as number] as number];
  const { constants, begins, features, coefficients } = linear;
  const terms = [constants[leaf] as number];
  for (let term = begins[leaf] as number; term < (begins[leaf + 1] as number); term += 1)
    terms.push((coefficients[term] as number) * (row[features[term] as number] as number));
  const isMissing = features.subarray(begins[leaf], begins[leaf + 1]).some((feature) => Number.isNaN(row[feature]));
  return isMissing ? [leafWeights[right[leaf] as number] as number] : terms;
}

/** Divides weights by three, so that sums are rounded and depend on the order of additions. */
function withThirds(tree: Tree): Tree {
  return { ...tree, linear: null, leafWeights: tree.leafWeights.map((weight) => Math.fround(weight / 3)) };
}

/** Adds float32 numbers tree by tree, beginning with the base scores. */
function expectedFloats({ trees, baseScores }: Forest, row: readonly number[]): readonly number[] {
  const scores = [...baseScores];
  for (const tree of trees) {
    const begin = tree.right[leafOf(tree, row)] as number;
    for (const output of scores.keys()) {
      if (tree.target !== "every" && tree.target !== output) continue;
      const weight = tree.leafWeights[tree.target === "every" ? begin + output : begin] as number;
      scores[output] = Math.fround((scores[output] as number) + weight);
    }
  }
  return scores;
}

function expected(forest: Forest, row: readonly number[]): readonly number[] {
  if (forest.precision === "float32") return expectedFloats(forest, row);
  const { trees, baseScores, outputCount } = forest;
  const scores = baseScores.map(() => 0);
  for (const tree of trees) {
    const leaf = leafOf(tree, row);
    const begin = tree.right[leaf] as number;
    if (tree.target !== "every") for (const term of termsOf(tree, leaf, row)) scores[tree.target]! += term;
    else for (let output = 0; output < outputCount; output += 1) scores[output]! += tree.leafWeights[begin + output]!;
  }
  return scores.map((score, output) => Math.fround(score + (baseScores[output] as number)));
}

test("random forests get the results of a node-by-node evaluation, for any number of rows", () => {
  const draws = fc.array(fc.nat(1 << 20), { minLength: 400, maxLength: 400 });
  const cases = fc.tuple(
    draws,
    fc.integer({ min: 0, max: 19 }),
    fc.integer({ min: 1, max: 3 }),
    fc.integer({ min: 1, max: 300 }),
  );
  fc.assert(
    fc.property(cases, ([drawn, treeCount, outputCount, rowCount]) => {
      let at = 0;
      const next = (below: number) => (drawn[at++ % drawn.length] as number) % below;
      const isFloat = next(2) === 0;
      const planted = Array.from({ length: treeCount }, () => plant(next, outputCount));
      const forest: Forest = {
        precision: isFloat ? "float32" : "float64",
        featureCount,
        outputCount,
        trees: isFloat ? planted.map(withThirds) : planted,
        baseScores: Array.from({ length: outputCount }, () => Math.fround(next(10) / (isFloat ? 3 : 1))),
        transform: { kind: "identity" },
      };
      const rows = Array.from({ length: rowCount }, () =>
        Array.from({ length: featureCount }, () => values[next(values.length)] as number),
      );
      const model = { forest: compactForest(forest, { workspaceCount: 3 }), outputForm: { kind: "scores" } } as const;
      const predictions = new Float32Array(rowCount * outputCount);
      const bits = new Int32Array(Float32Array.from(rows.flat()).buffer);
      new Evaluator(walk, model, 2).evaluate({ rows: bits, rowCount, predictions, contributions: null });
      assert.deepEqual(
        [...predictions],
        rows.flatMap((row) => expected(forest, row)),
      );
    }),
    { numRuns: 300 },
  );
});

test("rowSteps counts outputs besides tree steps: a forest of one tree with 5,000 outputs costs more than 5,000 steps", () => {
  const stump = newTree(3, 0);
  [stump.left[0], stump.right[0]] = [1, 2];
  const forest: Forest = {
    precision: "float64",
    featureCount,
    outputCount: 5000,
    trees: [stump],
    baseScores: Array.from({ length: 5000 }, () => 0),
    transform: { kind: "softmax" },
  };
  assert.ok(compactForest(forest, { workspaceCount: 1 }).rowSteps > 5000);
});

test("nested range splits do not multiply the memory of a tree", () => {
  const splitCount = 20;
  const tree = newTree(2 * splitCount + 1, 0);
  for (let split = 0; split < splitCount; split += 1) {
    [tree.left[2 * split], tree.right[2 * split]] = [2 * split + 1, 2 * split + 2];
    tree.steps.set(
      2 * split,
      Float32Array.from({ length: 100 }, (_, index) => index),
    );
  }
  const forest: Forest = {
    precision: "float64",
    featureCount,
    outputCount: 1,
    trees: [tree],
    baseScores: [0],
    transform: { kind: "identity" },
  };
  const { memory } = compactForest(forest, { workspaceCount: 1 });
  assert.ok(memory.buffer.byteLength < 200_000, `${memory.buffer.byteLength} bytes`);
});
