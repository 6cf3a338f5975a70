import { InferenceError } from "@galatea/base";

/**
 * A decision tree as arrays by node; node 0 is the root. At an inner node, a row goes left if its feature is less than the threshold. Nodes
 * in `steps` compare with several bounds instead, and `missingLeft` decides if the feature is missing (NaN). Features are float32.
 */
export interface Tree {
  /** Index of the left child; -1 at leaves. */
  readonly left: Int32Array;
  /** Index of the right child; for a leaf, the offset of its weights in `leafWeights`. */
  readonly right: Int32Array;
  readonly features: Int32Array;
  readonly thresholds: Float32Array;
  readonly missingLeft: Uint8Array;
  /**
   * Ascending bounds of nodes that need more than one threshold. A row goes left if its feature is from the first bound up to the second,
   * from the third up to the fourth, and so on, excluding the upper bounds; otherwise it goes right.
   */
  readonly steps: Map<number, Float32Array>;
  /** The values that leaves add. A leaf has one number, or one for each output, at its offset in `right`. */
  readonly leafWeights: Float64Array;
  /** Index of the output to which leaves add; "every" if leaves have a value for each output. */
  readonly target: number | "every";
  /** Linear models of the leaves; null if leaves add only weights. */
  readonly linear: LinearLeaves | null;
  /** Amount of the training data that reached each node; null if it is not requested. */
  readonly covers: ArrayLike<number> | null;
}

/**
 * Linear models of leaves, by node. A leaf adds a constant and a sum of terms, each a coefficient times a feature. If one of these features
 * is missing, the leaf adds its weight instead.
 */
export interface LinearLeaves {
  readonly constants: Float64Array;
  /** Index of each node's first term in `features` and `coefficients`; the last entry is the end of the terms. */
  readonly begins: Int32Array;
  readonly features: Int32Array;
  readonly coefficients: Float64Array;
}

/** The function that converts the sums of the leaves to scores: of each output separately, except softmax, which uses all outputs. */
export type Transform =
  | { readonly kind: "identity" }
  | { readonly kind: "sigmoid"; readonly alpha: number }
  | { readonly kind: "softmax" }
  /** `precision` is the precision of the exponential, if it differs from the precision of the sums. */
  | { readonly kind: "exponential"; readonly precision?: "float64" }
  /** ln(1 + e^x) */
  | { readonly kind: "softplus" }
  /** 1 above 0, else 0. */
  | { readonly kind: "hinge" }
  /** x |x| */
  | { readonly kind: "signed-square" }
  /** 2^(-x / ratio): isolation forests. */
  | { readonly kind: "exponential-ratio"; readonly ratio: number };

/**
 * The precision of sums. Float64 sums are rounded to float32 at the end. Float32 sums start with the base scores and are rounded after each
 * tree, as in XGBoost, so that predictions equal the library's to the last bit.
 */
export type Precision = "float64" | "float32";

/** A tree model of any library. Each output is the transform of its base score plus the values of the leaves. */
export interface Forest {
  readonly precision: Precision;
  readonly featureCount: number;
  /** Number of outputs: 1 for regressors and binary classifiers, otherwise one for each class or target. */
  readonly outputCount: number;
  readonly trees: readonly Tree[];
  readonly baseScores: readonly number[];
  readonly transform: Transform;
  /** XGBoost's name of the objective; absent for models of other libraries. */
  readonly objective?: string;
}

/** Maximum number of nodes in all trees of a model together. */
export const nodesMax = 2 ** 24;
/** Maximum depth of a tree: contributions are computed recursively. */
export const depthMax = 1024;
export const treesMax = 2 ** 20;
export const outputsMax = 2 ** 14;
export const featuresMax = 2 ** 24;

/** Returns a tree in which all nodes are leaves; the weight of each is at its index in `leafWeights`. */
export function newTree(nodeCount: number, target: number): Tree {
  const leaves = newVectorTree(nodeCount, new Float64Array(nodeCount));
  for (let node = 0; node < nodeCount; node += 1) leaves.right[node] = node;
  return { ...leaves, target };
}

/** Returns a tree in which all nodes are leaves with a weight for each output. The caller sets their offsets in `right`. */
export function newVectorTree(nodeCount: number, leafWeights: Float64Array): Tree {
  return {
    left: new Int32Array(nodeCount).fill(-1),
    right: new Int32Array(nodeCount).fill(-1),
    features: new Int32Array(nodeCount),
    thresholds: new Float32Array(nodeCount),
    missingLeft: new Uint8Array(nodeCount),
    steps: new Map(),
    leafWeights,
    target: "every",
    linear: null,
    covers: null,
  };
}

/** Counts the nodes of a model's trees before memory is allocated for them. */
export class NodeCount {
  #count = 0;

  add(nodeCount: number, about: string): void {
    if (!(nodeCount >= 1)) throw invalidForest(about, `has ${nodeCount} nodes`);
    this.#count += nodeCount;
    if (this.#count > nodesMax) throw new InferenceError("UNSUPPORTED", `the trees have more than ${nodesMax} nodes`);
  }
}

/**
 * Returns the reachable nodes of a tree in preorder. Throws InferenceError for an invalid tree: a child or a feature does not exist, two
 * paths lead to a node, or the tree is too deep.
 */
export function nodesInOrder(tree: Tree, { featureCount }: Forest, about: string): Int32Array {
  const { left, right, features } = tree;
  const nodeCount = left.length;
  if (nodeCount === 0) throw invalidForest(about, "has no nodes");
  const order = new Int32Array(nodeCount);
  const seen = new Uint8Array(nodeCount);
  const waiting: number[] = [0];
  const depths: number[] = [0];
  let count = 0;
  for (let node = waiting.pop(); node !== undefined; node = waiting.pop()) {
    const depth = depths.pop() as number;
    if (node < 0 || node >= nodeCount) throw invalidForest(about, `refers to node ${node}, which does not exist`);
    if (seen[node] === 1) throw invalidForest(about, `reaches node ${node} by two paths`);
    if (depth > depthMax) throw new InferenceError("UNSUPPORTED", `${about} is deeper than ${depthMax} nodes`);
    seen[node] = 1;
    order[count++] = node;
    if (left[node] === -1) continue;
    const feature = features[node] as number;
    if (feature < 0 || feature >= featureCount) {
      throw invalidForest(about, `uses feature ${feature} of ${featureCount}`);
    }
    waiting.push(right[node] as number, left[node] as number);
    depths.push(depth + 1, depth + 1);
  }
  return order.subarray(0, count);
}

/** Returns the error for an invalid file. */
export function invalidForest(about: string, what: string): InferenceError {
  return new InferenceError("INVALID_ARG", `${about} ${what}`);
}
