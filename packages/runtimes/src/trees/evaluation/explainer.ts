import type { CompactForest } from "./compact-forest.ts";
import type { Explained } from "./explained-forest.ts";
import { pathCount, node as nodeLayout, tree as treeLayout } from "./walk-module.ts";

/**
 * Computes Shapley values of a row, like XGBoost's `pred_contribs` and LightGBM's `pred_contrib`: the contribution of each feature to each
 * output before the transform, and the bias (the expected output). The algorithm is the second of Lundberg, Erion and Lee, "Consistent
 * Individualized Feature Attribution for Tree Ensembles". It follows all paths through a tree. For each feature of a path it tracks the
 * share of training rows that take the path if the feature is unknown, and the weights of the sets of known features, by size.
 */
export class Explainer {
  readonly #forest: CompactForest;
  readonly #explained: Explained;
  readonly #integers: Int32Array;
  readonly #floats: Float32Array;
  /** The paths of all levels in one array: the path of level n has n + 1 steps, one for each node from the root. */
  readonly #features: Int32Array;
  readonly #zeros: Float64Array;
  readonly #ones: Float64Array;
  readonly #weights: Float64Array;
  /** State of the current row and tree. */
  #valuesAt = 0;
  #contributions: Float64Array = new Float64Array(0);
  #firstOutput = 0;
  #weightCount = 0;

  constructor(forest: CompactForest, explained: Explained) {
    this.#forest = forest;
    this.#explained = explained;
    this.#integers = new Int32Array(forest.memory.buffer);
    this.#floats = new Float32Array(forest.memory.buffer);
    const capacity = wayAt(explained.depthMax + 1);
    this.#features = new Int32Array(capacity);
    this.#zeros = new Float64Array(capacity);
    this.#ones = new Float64Array(capacity);
    this.#weights = new Float64Array(capacity);
  }

  /**
   * Computes the contributions for a row. `valuesAt` is the address of the value of the row in the first column of its group. Overwrites
   * `contributions`, whose length must be `contributionColumns(forest)`.
   */
  explain(valuesAt: number, contributions: Float64Array): void {
    const { trees, treesEnd, featureCount, outputCount } = this.#forest;
    contributions.fill(0);
    this.#valuesAt = valuesAt;
    this.#contributions = contributions;
    for (let output = 0; output < outputCount; output += 1)
      contributions[output * (featureCount + 1) + featureCount] = this.#explained.expected[output] as number;
    for (let tree = trees; tree < treesEnd; tree += treeLayout.bytes) {
      this.#firstOutput = this.#integer(tree + treeLayout.sums) / (8 * pathCount);
      this.#weightCount = this.#integer(tree + treeLayout.weightCount);
      this.#follow(this.#integer(tree + treeLayout.root), { level: 0, length: 0, zero: 1, one: 1, feature: -1 });
    }
  }

  #integer(address: number): number {
    return this.#integers[address >> 2] as number;
  }

  #cover(node: number): number {
    return this.#floats[(this.#explained.coversAt + (node / nodeLayout.bytes) * 4) >> 2] as number;
  }

  /** Copies the path of the level above, appends this step, and follows both children; at a leaf, adds the contributions. */
  #follow(node: number, { level, length, ...step }: Step & { readonly level: number; readonly length: number }): void {
    const way = wayAt(level);
    if (level > 0) this.#copyPath(wayAt(level - 1), way, length);
    this.#extend(way, length, step);
    const children = this.#integer(node + nodeLayout.children);
    if (children === node) return this.#addLeaf(node, way, length);
    const column = this.#integer(node + nodeLayout.column);
    const feature = this.#integer(this.#forest.columnsAt + column / pathCount) >> 1;
    const key = this.#integer(node + nodeLayout.key);
    const isSecond = this.#integer(this.#valuesAt + column) >= key;
    const [hot, cold] = isSecond ? [children + nodeLayout.bytes, children] : [children, children + nodeLayout.bytes];
    let [zero, one, rest] = [1, 1, length];
    for (let position = 1; position <= length; position += 1) {
      if (this.#features[way + position] !== feature) continue;
      zero = this.#zeros[way + position] as number;
      one = this.#ones[way + position] as number;
      this.#unwind(way, length, position);
      rest -= 1;
      break;
    }
    const cover = this.#cover(node);
    const shareOf = (child: number) => (cover > 0 ? this.#cover(child) / cover : 0);
    const next = { level: level + 1, length: rest + 1, feature };
    this.#follow(hot, { ...next, zero: zero * shareOf(hot), one });
    this.#follow(cold, { ...next, zero: zero * shareOf(cold), one: 0 });
  }

  #copyPath(from: number, to: number, length: number): void {
    for (const column of [this.#features, this.#zeros, this.#ones, this.#weights])
      column.copyWithin(to, from, from + length);
  }

  #extend(way: number, length: number, { zero, one, feature }: Step): void {
    const weights = this.#weights;
    this.#features[way + length] = feature;
    this.#zeros[way + length] = zero;
    this.#ones[way + length] = one;
    weights[way + length] = length === 0 ? 1 : 0;
    for (let position = length - 1; position >= 0; position -= 1) {
      const weight = weights[way + position] as number;
      weights[way + position + 1]! += (one * weight * (position + 1)) / (length + 1);
      weights[way + position] = (zero * weight * (length - position)) / (length + 1);
    }
  }

  /** Removes a step from the path, because a feature that a node uses again must occur only once. */
  #unwind(way: number, length: number, used: number): void {
    const weights = this.#weights;
    const [zero, one] = [this.#zeros[way + used] as number, this.#ones[way + used] as number];
    let next = weights[way + length] as number;
    for (let position = length - 1; position >= 0; position -= 1) {
      const weight = weights[way + position] as number;
      if (one !== 0) {
        const unwound = (next * (length + 1)) / ((position + 1) * one);
        weights[way + position] = unwound;
        next = weight - (unwound * zero * (length - position)) / (length + 1);
      } else {
        weights[way + position] = zero === 0 ? 0 : (weight * (length + 1)) / (zero * (length - position));
      }
    }
    for (const column of [this.#features, this.#zeros, this.#ones])
      column.copyWithin(way + used, way + used + 1, way + length + 1);
  }

  /** Returns the sum of the weights that the path would have without one of its steps. */
  #unwoundSum(way: number, length: number, used: number): number {
    const [zero, one] = [this.#zeros[way + used] as number, this.#ones[way + used] as number];
    let next = this.#weights[way + length] as number;
    let sum = 0;
    for (let position = length - 1; position >= 0; position -= 1) {
      const weight = this.#weights[way + position] as number;
      if (one !== 0) {
        const unwound = (next * (length + 1)) / ((position + 1) * one);
        sum += unwound;
        next = weight - (unwound * zero * (length - position)) / (length + 1);
      } else if (zero !== 0) {
        sum += (weight * (length + 1)) / (zero * (length - position));
      }
    }
    return sum;
  }

  #addLeaf(leaf: number, way: number, length: number): void {
    const stride = this.#forest.featureCount + 1;
    const at = leaf + nodeLayout.weight;
    for (let position = 1; position <= length; position += 1) {
      const known = (this.#ones[way + position] as number) - (this.#zeros[way + position] as number);
      const share = this.#unwoundSum(way, length, position) * known;
      const feature = this.#features[way + position] as number;
      if (this.#weightCount === 0) {
        this.#contributions[this.#firstOutput * stride + feature]! += share * (this.#floats[at >> 2] as number);
        continue;
      }
      const weights = this.#integer(at) >> 2;
      for (let output = 0; output < this.#weightCount; output += 1)
        this.#contributions[output * stride + feature]! += share * (this.#floats[weights + output] as number);
    }
  }
}

function wayAt(level: number): number {
  return (level * (level + 1)) / 2;
}

/** A step of a path: its feature, and the share of rows that take the step if the feature is unknown (`zero`) or known (`one`). */
interface Step {
  readonly feature: number;
  readonly zero: number;
  readonly one: number;
}
