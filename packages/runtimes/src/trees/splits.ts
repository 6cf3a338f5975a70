import { InferenceError } from "@galatea/base";
import { ceilToFloat32, floorToFloat32, nextUp } from "./float32.ts";
import type { Tree } from "./forest.ts";

export type Comparison = "<" | "<=" | ">" | ">=" | "==";

/** Where a split leads. */
export interface Branches {
  readonly feature: number;
  readonly whenTrue: number;
  readonly whenFalse: number;
  /** Where rows go whose feature is missing. */
  readonly missingTrue: boolean;
}

/** Makes `node` compare its feature with a threshold of any precision. */
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
      // Nothing lies beyond infinity.
      return splitBySteps(tree, node, {
        ...branches,
        bounds: Float32Array.from(bounds.slice(0, threshold === Infinity ? 1 : 2)),
      });
    }
  }
}

function splitUpTo(tree: Tree, node: number, branches: Branches & { readonly threshold: number }): void {
  const threshold = floorToFloat32(branches.threshold);
  // Everything is at most infinity, and nothing is below minus infinity.
  if (threshold === Infinity) splitBelow(tree, node, { ...turned(branches), threshold: -Infinity });
  else splitBelow(tree, node, { ...branches, threshold: nextUp(threshold) });
}

/** The other way round; a comparison with NaN fails whichever it is, so such a split is turned only where its threshold is a number. */
function turned(branches: Branches): Branches {
  const { feature, whenTrue, whenFalse, missingTrue } = branches;
  return { feature, whenTrue: whenFalse, whenFalse: whenTrue, missingTrue: !missingTrue };
}

/** The common case, in the form that trees have: the true branch is the left one. */
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

/** True from the first bound on up to the second, from the third to the fourth, and so on. */
export function splitBySteps(
  tree: Tree,
  node: number,
  { bounds, feature, whenTrue, whenFalse, missingTrue }: Branches & { readonly bounds: Float32Array },
): void {
  splitBelow(tree, node, { feature, threshold: Number.NaN, whenTrue, whenFalse, missingTrue });
  tree.steps.set(node, bounds);
}

/** Categories of one split are so many at most, once those that follow one another count as one. */
export const categoryRangesMax = 4096;

/**
 * Bounds for membership in a set of categories, ascending, as the libraries tell it: a value is cut to an integer first, so that category 3 is
 * all from 3 to below 4, and category 0, where they cut before they look at the sign, all above -1. Throws where the set has too many ranges.
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
        throw new InferenceError(
          "UNSUPPORTED",
          `${about} asks for more than ${categoryRangesMax} ranges of categories`,
        );
      }
      bounds.push(category === 0 && zeroReachesDown ? nextUp(-1) : ceilToFloat32(category));
    }
    end = category + 1;
  }
  if (end !== -1) bounds.push(ceilToFloat32(end));
  return Float32Array.from(bounds);
}
