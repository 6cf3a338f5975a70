import { InferenceError } from "@galatea/base";

/**
 * A decision tree as arrays by node; node 0 is the root. At an inner node a row goes left if its feature is below the threshold (a
 * float32, like all features), or by `steps`, or by `missingLeft` when the feature is missing (NaN).
 */
export interface Tree {
  /** -1 at leaves. */
  readonly left: Int32Array;
  /** For a leaf, the offset of its weights. */
  readonly right: Int32Array;
  readonly features: Int32Array;
  readonly thresholds: Float32Array;
  readonly missingLeft: Uint8Array;
  /**
   * Nodes that one threshold does not describe, with ascending bounds: rows go left from the first bound up to the second, from the third
   * up to the fourth, and so on, and right elsewhere.
   */
  readonly steps: Map<number, Float32Array>;
  /** The values that leaves add, one number or one for each output, at the leaf's offset in `right`. */
  readonly leafWeights: Float64Array;
  /** The output to which leaves add. */
  readonly target: number | "every";
  /** Null when leaves add only weights. */
  readonly linear: LinearLeaves | null;
  /** Amount of the training data that reached each node; null when not requested. */
  readonly covers: ArrayLike<number> | null;
}

/**
 * Leaves that add a constant and a sum of terms, each a coefficient times a feature. For rows in which one of its features is missing, a
 * leaf adds its weight instead. Indexed by node.
 */
export interface LinearLeaves {
  readonly constants: Float64Array;
  /** Offset of a node's terms; the last entry is their end. */
  readonly begins: Int32Array;
  readonly features: Int32Array;
  readonly coefficients: Float64Array;
}

/** The transform of the sums of the leaves, for each output or, for softmax, for a row's outputs together. */
export type Transform =
  | { readonly kind: "identity" }
  | { readonly kind: "sigmoid"; readonly alpha: number }
  | { readonly kind: "softmax" }
  /** `precision`: that of the exponential, if it differs from that of the sums. */
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
 * The precision of sums and predictions: in float64, rounded at the end; or in float32 like XGBoost, from the base scores on and tree by
 * tree, so that predictions equal the library's to the last bit.
 */
export type Precision = "float64" | "float32";

/** A tree model of any library: each output is its base score plus the leaves' values, transformed. */
export interface Forest {
  readonly precision: Precision;
  readonly featureCount: number;
  /** Columns of the result: 1 for regressors and binary classifiers, otherwise one for each class or target. */
  readonly outputCount: number;
  readonly trees: readonly Tree[];
  readonly baseScores: readonly number[];
  readonly transform: Transform;
  /** XGBoost's name of the objective; absent for other libraries' files. */
  readonly objective?: string;
}

/** Limit of all trees of a model together, because a file for ONNX Runtime may not exceed 2 GiB. */
export const nodesMax = 2 ** 24;
/** ONNX Runtime reads trees recursively. */
export const depthMax = 1024;
export const treesMax = 2 ** 20;
export const outputsMax = 2 ** 14;
export const featuresMax = 2 ** 24;

/** Returns a tree of leaves only, each with its own weight, at its index. */
export function newTree(nodeCount: number, target: number): Tree {
  const leaves = newVectorTree(nodeCount, new Float64Array(nodeCount));
  for (let node = 0; node < nodeCount; node += 1) leaves.right[node] = node;
  return { ...leaves, target };
}

/** Returns a tree whose leaves have a weight for each output; their offsets are set later. */
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
 * Returns the reachable nodes of a tree, each before its descendants, the left side first. Throws for an invalid tree: missing children,
 * two paths to a node, a missing feature, too much depth.
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

/** Returns the error of an inconsistent file. */
export function invalidForest(about: string, what: string): InferenceError {
  return new InferenceError("INVALID_ARG", `${about} ${what}`);
}
