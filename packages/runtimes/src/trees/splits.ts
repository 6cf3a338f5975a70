import { InferenceError } from "@galatea/base";
import { ceilToFloat32, floorToFloat32, nextUp } from "./float32.ts";
import type { Tree } from "./forest.ts";

export type Comparison = "<" | "<=" | ">" | ">=" | "==";

/** The feature that a split compares, and its two branches. */
export interface Branches {
  readonly feature: number;
  readonly whenTrue: number;
  readonly whenFalse: number;
  /** True if rows with a missing feature take the true branch. */
  readonly missingTrue: boolean;
}

/** Sets a split that compares a feature with a float64 threshold. */
export function splitByThreshold(
  tree: Tree,
  node: number,
  { comparison, threshold, ...branches }: Branches & { readonly comparison: Comparison; readonly threshold: number },
): void {
  switch (comparison) {
    case "<":
      return splitBelow(tree, node, { ...branches, threshold: ceilToFloat32(threshold) });
    case "<=":
      return splitUpTo(tree, node, { ...branches, threshold });
    case ">=":
      return splitBelow(tree, node, { ...turned(branches), threshold: ceilToFloat32(threshold) });
    case ">":
      return splitUpTo(tree, node, { ...turned(branches), threshold });
    case "==": {
      const isFloat32 = Math.fround(threshold) === threshold;
      const bounds = isFloat32 ? [threshold, nextUp(threshold)] : [];
      // No value is greater than infinity, so the upper bound is omitted.
      return splitBySteps(tree, node, {
        ...branches,
        bounds: Float32Array.from(bounds.slice(0, threshold === Infinity ? 1 : 2)),
      });
    }
  }
}

function splitUpTo(tree: Tree, node: number, branches: Branches & { readonly threshold: number }): void {
  const threshold = floorToFloat32(branches.threshold);
  // `x <= Infinity` is always true, but Infinity has no next float32: `x < -Infinity` with swapped branches is equivalent.
  if (threshold === Infinity) splitBelow(tree, node, { ...turned(branches), threshold: -Infinity });
  else splitBelow(tree, node, { ...branches, threshold: nextUp(threshold) });
}

/** Swaps the branches. A comparison with a NaN threshold is always false, so callers must not negate it by swapping. */
function turned(branches: Branches): Branches {
  const { feature, whenTrue, whenFalse, missingTrue } = branches;
  return { feature, whenTrue: whenFalse, whenFalse: whenTrue, missingTrue: !missingTrue };
}

/** Sets the split `feature < threshold`; the true branch is the left child. */
export function splitBelow(
  tree: Tree,
  node: number,
  { feature, threshold, whenTrue, whenFalse, missingTrue }: Branches & { readonly threshold: number },
): void {
  tree.features[node] = feature;
  tree.thresholds[node] = threshold;
  tree.left[node] = whenTrue;
  tree.right[node] = whenFalse;
  tree.missingLeft[node] = missingTrue ? 1 : 0;
}

/** Sets a split that is true from the first bound up to the second, from the third up to the fourth, and so on. */
export function splitBySteps(
  tree: Tree,
  node: number,
  { bounds, feature, whenTrue, whenFalse, missingTrue }: Branches & { readonly bounds: Float32Array },
): void {
  splitBelow(tree, node, { feature, threshold: Number.NaN, whenTrue, whenFalse, missingTrue });
  tree.steps.set(node, bounds);
}

/** Maximum number of ranges of consecutive categories in one split. */
export const categoryRangesMax = 4096;

/**
 * Returns the ascending bounds of a set of categories, for `splitBySteps`. Libraries truncate a value to an integer, so category 3 includes
 * all values from 3 to below 4. With `zeroReachesDown`, category 0 includes all values above -1: libraries that truncate before they check
 * the sign behave like this. Throws InferenceError if the set has too many ranges.
 */
export function categoryBounds(
  categories: Iterable<number>,
  { about, zeroReachesDown }: { readonly about: string; readonly zeroReachesDown: boolean },
): Float32Array {
  const bounds: number[] = [];
  let end = -1;
  for (const category of categories) {
    if (category < end) continue;
    if (category > end) {
      if (end !== -1) bounds.push(ceilToFloat32(end));
      if (bounds.length >= 2 * categoryRangesMax) {
        throw new InferenceError("UNSUPPORTED", `${about} needs more than ${categoryRangesMax} ranges of categories`);
      }
      bounds.push(category === 0 && zeroReachesDown ? nextUp(-1) : ceilToFloat32(category));
    }
    end = category + 1;
  }
  if (end !== -1) bounds.push(ceilToFloat32(end));
  return Float32Array.from(bounds);
}
