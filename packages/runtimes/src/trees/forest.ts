import { InferenceError } from "@galatea/base";

/**
 * A decision tree as arrays by node; node 0 is the root. At an inner node a row goes left where its feature is below the threshold (a
 * float32, as all features are), or as `steps` says, or, where it is missing (NaN), as `missingLeft` says.
 */
export interface Tree {
  /** -1 at leaves. */
  readonly left: Int32Array;
  /** At leaves, where their weights begin. */
  readonly right: Int32Array;
  readonly features: Int32Array;
  readonly thresholds: Float32Array;
  readonly missingLeft: Uint8Array;
  /**
   * Nodes that one threshold does not describe, with bounds that ascend: rows go left from the first bound up to the second, from the third up
   * to the fourth, and so on, and right elsewhere.
   */
  readonly steps: Map<number, Float32Array>;
  /** What leaves add, a number or one for each output; a leaf's begin where `right` says. */
  readonly leafWeights: Float64Array;
  /** The output that leaves add to. */
  readonly target: number | "every";
  /** Null where leaves add weights alone. */
  readonly linear: LinearLeaves | null;
  /** How much of the training's data came to each node; null where nobody asked. */
  readonly covers: ArrayLike<number> | null;
}

/**
 * Leaves that add a constant and a sum of terms, a coefficient times a feature each; their weight is what they add instead for rows that miss a
 * feature of it. All is by node.
 */
export interface LinearLeaves {
  readonly constants: Float64Array;
  /** Where a node's terms begin, and behind the last node where all end. */
  readonly begins: Int32Array;
  readonly features: Int32Array;
  readonly coefficients: Float64Array;
}

/** What is done with the sums of the leaves, output by output or, for softmax, with a row's outputs together. */
export type Transform =
  | { readonly kind: "identity" }
  | { readonly kind: "sigmoid"; readonly alpha: number }
  | { readonly kind: "softmax" }
  /** `precision`: of the exponential, where it is not that of the sums. */
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
 * How sums and predictions are computed: in float64, and rounded at the end; or in float32 as XGBoost does, from the base scores on and tree by tree,
 * so that predictions equal the library's to the last bit.
 */
export type Precision = "float64" | "float32";

/** A model of trees, whichever library wrote it: each output is its base score and what the leaves add, transformed. */
export interface Forest {
  readonly precision: Precision;
  readonly featureCount: number;
  /** Columns of the result: 1 for regressors and binary classifiers, or one for each class or target. */
  readonly outputCount: number;
  readonly trees: readonly Tree[];
  readonly baseScores: readonly number[];
  readonly transform: Transform;
  /** As XGBoost names it; other libraries' files have none. */
  readonly objective?: string;
}

/** Of all trees of a model together: a file for ONNX Runtime may not be larger than 2 GiB. */
export const nodesMax = 2 ** 24;
/** ONNX Runtime goes through a tree by recursion when it reads it. */
export const depthMax = 1024;
export const treesMax = 2 ** 20;
export const outputsMax = 2 ** 14;
export const featuresMax = 2 ** 24;

/** A tree of leaves alone, each with a weight of its own: the one at its place. */
export function newTree(nodeCount: number, target: number): Tree {
  const leaves = newVectorTree(nodeCount, new Float64Array(nodeCount));
  for (let node = 0; node < nodeCount; node += 1) leaves.right[node] = node;
  return { ...leaves, target };
}

/** The same, whose leaves have a weight for each output: where, is still to be told. */
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

/** Counts the nodes of a model's trees before there is memory for them. */
export class NodeCount {
  #count = 0;

  add(nodeCount: number, about: string): void {
    if (!(nodeCount >= 1)) throw broken(about, `has ${nodeCount} nodes`);
    this.#count += nodeCount;
    if (this.#count > nodesMax) throw new InferenceError("UNSUPPORTED", `the trees have more than ${nodesMax} nodes`);
  }
}

/**
 * The nodes of a tree that rows can come to, each before what lies below it, the left side first. Throws where it is no tree: children that are not
 * there, two ways to a node, a feature that is not there, more depth than can be run.
 */
export function nodesInOrder(tree: Tree, { featureCount }: Forest, about: string): Int32Array {
  const { left, right, features } = tree;
  const nodeCount = left.length;
  if (nodeCount === 0) throw broken(about, "has no nodes");
  const order = new Int32Array(nodeCount);
  const seen = new Uint8Array(nodeCount);
  const waiting: number[] = [0];
  const depths: number[] = [0];
  let count = 0;
  for (let node = waiting.pop(); node !== undefined; node = waiting.pop()) {
    const depth = depths.pop() as number;
    if (node < 0 || node >= nodeCount) throw broken(about, `names node ${node}, which is not there`);
    if (seen[node] === 1) throw broken(about, `leads to node ${node} in two ways`);
    if (depth > depthMax) throw new InferenceError("UNSUPPORTED", `${about} is deeper than ${depthMax} nodes`);
    seen[node] = 1;
    order[count++] = node;
    if (left[node] === -1) continue;
    const feature = features[node] as number;
    if (feature < 0 || feature >= featureCount) {
      throw broken(about, `asks for feature ${feature} of ${featureCount}`);
    }
    waiting.push(right[node] as number, left[node] as number);
    depths.push(depth + 1, depth + 1);
  }
  return order.subarray(0, count);
}

/** The error for a file that says things that cannot be. */
export function broken(about: string, what: string): InferenceError {
  return new InferenceError("INVALID_ARG", `${about} ${what}`);
}
