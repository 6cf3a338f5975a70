import assert from "node:assert/strict";
import { test } from "node:test";
import { type Forest, newTree, nodesInOrder, type Tree } from "./forest.ts";

const forest: Forest = {
  precision: "float64",
  featureCount: 2,
  outputCount: 1,
  trees: [],
  baseScores: [0],
  transform: { kind: "identity" },
};

function treeOf(children: readonly (readonly [number, number] | null)[], feature = 0): Tree {
  const tree = newTree(children.length, 0);
  for (const [node, both] of children.entries()) {
    if (both === null) continue;
    [tree.left[node], tree.right[node]] = both;
    tree.features[node] = feature;
  }
  return tree;
}

test("nodesInOrder lists parents before children and omits unreachable nodes", () => {
  assert.deepEqual([...nodesInOrder(treeOf([[3, 1], null, null, [4, 5], null, null]), forest, "it")], [0, 3, 4, 5, 1]);
});

test("the error for an invalid tree says what is wrong", () => {
  const refused = (tree: Tree, message: string) =>
    assert.throws(() => nodesInOrder(tree, forest, "tree 7"), { code: "INVALID_ARG", message: `tree 7 ${message}` });
  refused(treeOf([[1, 0], null]), "reaches node 0 by two paths");
  refused(treeOf([[1, 1], null]), "reaches node 1 by two paths");
  refused(treeOf([[1, 2], null]), "refers to node 2, which does not exist");
  refused(treeOf([[1, -5], null]), "refers to node -5, which does not exist");
  refused(treeOf([[1, 2], null, null], 2), "uses feature 2 of 2");
  refused(newTree(0, 0), "has no nodes");
});

test("a tree deeper than 1,024 nodes is rejected", () => {
  const chain = (depth: number) =>
    treeOf(
      Array.from({ length: 2 * depth + 1 }, (_, node) =>
        node % 2 === 0 && node < 2 * depth ? [node + 1, node + 2] : null,
      ),
    );
  assert.equal(nodesInOrder(chain(1024), forest, "it").length, 2049);
  assert.throws(() => nodesInOrder(chain(1025), forest, "it"), {
    code: "UNSUPPORTED",
    message: "it is deeper than 1024 nodes",
  });
});
