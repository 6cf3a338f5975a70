import { InferenceError } from "@galatea/base";
import { memberOf } from "./bundle-attributes.ts";
import { invalidBundle, type BundleFolder } from "./bundle-files.ts";
import { LeapFailure } from "./leap-values.ts";

const nodesMax = 2 ** 22;

/** A tree as arrays by node, each before its descendants; a node's left child is the next one. */
export interface DecisionTree {
  /** Index of the feature that a node compares; -1 at leaves. */
  readonly features: Int32Array;
  readonly thresholds: Float64Array;
  /** Index of the right child; 0 at leaves, because the root is never a child. */
  readonly right: Int32Array;
  /** Splits by category: a row goes left if its feature is in the set, or, if `isLeft` is false, if it is not. */
  readonly categories: ReadonlyMap<number, CategorySplit>;
  /** Values of leaves, `leafWidth` numbers each, at the offset `leafAt`. */
  readonly leafValues: Float64Array;
  readonly leafAt: Int32Array;
  readonly leafWidth: number;
}

interface CategorySplit {
  readonly isLeft: boolean;
  readonly values: ReadonlySet<number>;
}

/** Reads `tree.json`, which has one node per line in preorder: a node, its left subtree, its right subtree. */
export function readDecisionTree(folder: BundleFolder): DecisionTree {
  const lines = folder
    .text("tree.json")
    .split("\n")
    .filter((line) => line !== "");
  if (lines.length === 0 || lines.length > nodesMax)
    throw invalidBundle(`has ${lines.length} nodes in '${folder.name}'`);
  const about = folder.name;
  const nodeCount = lines.length;
  const features = new Int32Array(nodeCount).fill(-1);
  const thresholds = new Float64Array(nodeCount);
  const right = new Int32Array(nodeCount);
  const categories = new Map<number, CategorySplit>();
  const leafAt = new Int32Array(nodeCount);
  const leaves: number[] = [];
  let leafWidth = 0;
  // Inner nodes whose right subtree has not started.
  const open: number[] = [];
  for (const [node, line] of lines.entries()) {
    const read = parsedNode(line, about);
    if (read.kind === "inner") {
      open.push(node);
      features[node] = read.feature;
      thresholds[node] = read.threshold;
      if (read.split !== null) categories.set(node, read.split);
      continue;
    }
    leafWidth = leafWidth === 0 ? read.values.length : leafWidth;
    if (read.values.length !== leafWidth) throw invalidBundle(`has leaves of different sizes in '${about}'`);
    leafAt[node] = leaves.length;
    for (const value of read.values) leaves.push(value);
    const parent = open.pop();
    if (parent === undefined) {
      if (node !== nodeCount - 1) throw invalidBundle(`has nodes after the end of the tree in '${about}'`);
    } else right[parent] = node + 1;
  }
  // A file that ends early leaves inner nodes without a right subtree.
  if (open.length > 0 || right.includes(nodeCount)) throw invalidBundle(`has a tree in '${about}' that does not end`);
  return { features, thresholds, right, categories, leafValues: Float64Array.from(leaves), leafAt, leafWidth };
}

type ReadNode =
  | { readonly kind: "leaf"; readonly values: readonly number[] }
  | {
      readonly kind: "inner";
      readonly feature: number;
      readonly threshold: number;
      readonly split: CategorySplit | null;
    };

function parsedNode(line: string, about: string): ReadNode {
  let node: unknown;
  try {
    node = JSON.parse(line);
  } catch (error) {
    throw new InferenceError("INVALID_ARG", `the bundle has a node in '${about}' that is not valid JSON`, {
      cause: error,
    });
  }
  if (memberOf(node, "type") === "leaf") {
    const values = memberOf(node, "values");
    if (!isNumbers(values) || values.length === 0) throw invalidBundle(`has a leaf without numbers in '${about}'`);
    return { kind: "leaf", values };
  }
  const split = memberOf(node, "split");
  const feature = memberOf(split, "featureIndex") ?? 0;
  if (typeof feature !== "number" || !Number.isInteger(feature) || feature < 0) {
    throw invalidBundle(`splits by an invalid feature in '${about}'`);
  }
  if (memberOf(split, "type") === "continuous") {
    const threshold = memberOf(split, "threshold") ?? 0;
    if (typeof threshold !== "number") throw invalidBundle(`has a split without a threshold in '${about}'`);
    return { kind: "inner", feature, threshold, split: null };
  }
  const values = memberOf(split, "categories") ?? [];
  if (memberOf(split, "type") !== "categorical" || !isNumbers(values)) {
    throw invalidBundle(`has a node that is neither leaf nor split in '${about}'`);
  }
  const isLeft = memberOf(split, "isLeft") === true;
  return { kind: "inner", feature, threshold: 0, split: { isLeft, values: new Set(values) } };
}

function isNumbers(value: unknown): value is readonly number[] {
  return Array.isArray(value) && value.every((each) => typeof each === "number");
}

/** Returns the values of the leaf that the features reach, as a view of `leafValues`. */
export function leafOf(tree: DecisionTree, features: Float64Array): Float64Array {
  let node = 0;
  for (let feature = tree.features[0] as number; feature !== -1; feature = tree.features[node] as number) {
    const value = features[feature];
    if (value === undefined) throw new LeapFailure(`a vector has no element ${feature}, which a tree uses`);
    const split = tree.categories.get(node);
    const isLeft =
      split === undefined ? value <= (tree.thresholds[node] as number) : split.values.has(value) === split.isLeft;
    node = isLeft ? node + 1 : (tree.right[node] as number);
  }
  const at = tree.leafAt[node] as number;
  return tree.leafValues.subarray(at, at + tree.leafWidth);
}
