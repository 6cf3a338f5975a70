import { ceilToFloat32, floorToFloat32, nextUp } from "../float32.ts";
import { invalidForest, type LinearLeaves, newTree, type NodeCount, nodesMax, type Tree } from "../forest.ts";
import { type Branches, categoryBounds, splitBySteps, splitByThreshold } from "../splits.ts";
import type { TextLines } from "./text-lines.ts";

/** The lines of a tree that its evaluation needs. */
interface Written {
  readonly leafCount: number;
  /** True if leaves have linear models (`linear_tree`). */
  readonly isLinear: boolean;
  readonly columns: ReadonlyMap<string, Float64Array>;
}

/** Bits of a node's decision type. */
const categoricalBit = 1;
const defaultLeftBit = 2;
const missingKinds = ["none", "zero", "nan"] as const;
/** LightGBM treats numbers as zero if their magnitude is at most this. */
const zeroReach = Math.fround(1e-35);

export interface LightgbmTreeOptions {
  readonly index: number;
  readonly target: number;
  /** True to read covers. */
  readonly explains: boolean;
  /** Counts the nodes of all trees of the model. */
  readonly nodes: NodeCount;
}

/** Reads a tree. The current line must be its first line; afterwards the current line is the one after the tree. */
export function readLightgbmTree(lines: TextLines, { index, target, nodes, explains }: LightgbmTreeOptions): Tree {
  const about = `tree ${index}`;
  const { leafCount, isLinear, columns } = readColumns(lines, about);
  const splitCount = leafCount - 1;
  const column = (name: string): Float64Array => {
    const values = columns.get(name);
    if (values === undefined) throw invalidForest(about, `has no ${name}`);
    return values;
  };
  nodes.add(leafCount + splitCount, about);
  const covers = explains ? [...(splitCount === 0 ? [] : column("internal_count")), ...column("leaf_count")] : null;
  const linear = isLinear ? readLinear(columns, { leafCount, about }) : null;
  const tree = { ...newTree(leafCount + splitCount, target), linear, covers };
  tree.leafWeights.set(column("leaf_value"), splitCount);
  if (splitCount === 0) return tree;
  const [features, thresholds] = [column("split_feature"), column("threshold")];
  const [left, right] = [column("left_child"), column("right_child")];
  const types = columns.get("decision_type") ?? new Float64Array(splitCount);
  const categories = new CategorySets(columns, about);
  // The file numbers leaves -1, -2 and so on; in the Tree, leaves follow the splits.
  const child = (written: number): number => (written < 0 ? splitCount - 1 - written : written);
  for (let node = 0; node < splitCount; node += 1) {
    const [whenTrue, whenFalse] = [child(left[node] as number), child(right[node] as number)];
    const feature = features[node] as number;
    if (![whenTrue, whenFalse, feature].every(Number.isInteger))
      throw invalidForest(about, `has no children or no feature at split ${node}`);
    const branches = { feature, whenTrue, whenFalse };
    const threshold = thresholds[node] as number;
    const type = types[node] as number;
    if ((type & categoricalBit) === 0) splitNumbers(tree, node, { ...branches, threshold, type, about });
    else splitBySteps(tree, node, { ...branches, missingTrue: false, bounds: categories.boundsOf(threshold, node) });
  }
  return tree;
}

function readColumns(lines: TextLines, about: string): Written {
  const columns = new Map<string, Float64Array>();
  let leafCount = 0;
  let categoryCount = 0;
  let isLinear = false;
  while (lines.next() && lines.name !== "Tree" && lines.name !== "end of trees") {
    const { name } = lines;
    if (name === "num_leaves") leafCount = lines.integer(1, nodesMax);
    else if (name === "num_cat") categoryCount = lines.integer(0, nodesMax);
    else if (name === "is_linear") isLinear = lines.integer(0, 1) === 1;
    else {
      const count = columnLength(name, { leafCount, categoryCount, columns });
      if (count === null || count === 0) continue;
      if (columns.has(name)) throw invalidForest(about, `has ${name} twice`);
      columns.set(name, lines.numbers(count));
    }
  }
  if (leafCount === 0) throw invalidForest(about, "has no num_leaves");
  return { leafCount, isLinear, columns };
}

/** Reads linear models of leaves. `num_features` declares the number of terms of each leaf. */
function readLinear(
  columns: ReadonlyMap<string, Float64Array>,
  { leafCount, about }: { readonly leafCount: number; readonly about: string },
): LinearLeaves {
  const [written, counts] = [columns.get("leaf_const"), columns.get("num_features")];
  if (written === undefined || counts === undefined) throw invalidForest(about, "has no leaf_const or no num_features");
  const splitCount = leafCount - 1;
  const termCount = sumOfCounts(counts);
  const features = columns.get("leaf_features") ?? new Float64Array(0);
  const coefficients = columns.get("leaf_coeff") ?? new Float64Array(0);
  if (features.length !== termCount || coefficients.length !== termCount)
    throw invalidForest(
      about,
      `has ${features.length} features and ${coefficients.length} coefficients for its leaves`,
    );
  if (features.some((feature) => (feature | 0) !== feature)) throw invalidForest(about, "has invalid leaf_features");
  const constants = new Float64Array(leafCount + splitCount);
  constants.set(written, splitCount);
  const begins = new Int32Array(leafCount + splitCount + 1);
  for (const [leaf, count] of counts.entries())
    begins[splitCount + leaf + 1] = (begins[splitCount + leaf] as number) + count;
  return { constants, begins, features: Int32Array.from(features), coefficients };
}

/** Returns the sum of counts; -1 if one of them is invalid. */
function sumOfCounts(counts: Float64Array | undefined): number {
  let sum = 0;
  for (const count of counts ?? []) {
    if (!(Number.isInteger(count) && count >= 0)) return -1;
    sum += count;
  }
  return sum;
}

/** Returns the number of values in a line; null for lines that are not needed. */
function columnLength(
  name: string,
  { leafCount, categoryCount, columns }: Omit<Written, "isLinear"> & { readonly categoryCount: number },
): number | null {
  switch (name) {
    case "leaf_value":
    case "leaf_count":
    case "leaf_const":
    case "num_features":
      return leafCount;
    case "leaf_features":
    case "leaf_coeff":
      return Math.max(0, sumOfCounts(columns.get("num_features")));
    case "split_feature":
    case "threshold":
    case "decision_type":
    case "left_child":
    case "right_child":
    case "internal_count":
      return Math.max(0, leafCount - 1);
    case "cat_boundaries":
      return categoryCount === 0 ? 0 : categoryCount + 1;
    case "cat_threshold": {
      const count = columns.get("cat_boundaries")?.[categoryCount] ?? 0;
      return Number.isInteger(count) && count >= 0 ? count : 0;
    }
    default:
      return null;
  }
}

type NumberSplit = Omit<Branches, "missingTrue"> & {
  readonly threshold: number;
  readonly type: number;
  readonly about: string;
};

/**
 * Sets the split `x <= threshold`. The type of the node determines which values are missing: none (NaN counts as 0), zero and NaN, or
 * NaN only.
 */
function splitNumbers(tree: Tree, node: number, { threshold, type, about, ...branches }: NumberSplit): void {
  const isDefaultLeft = (type & defaultLeftBit) !== 0;
  const missing = missingKinds[(type >> 2) & 3];
  if (missing === undefined || Number.isNaN(threshold))
    throw invalidForest(about, `has split ${node} of an unknown kind`);
  const zeroIsLeft = 0 <= threshold;
  if (missing !== "zero" || isDefaultLeft === zeroIsLeft) {
    const missingTrue = missing === "none" ? zeroIsLeft : isDefaultLeft;
    // A threshold near zero is moved, so that all values that LightGBM treats as zero go to the same side as zero.
    const isZero = Math.abs(threshold) <= zeroReach;
    const comparison = isZero && !zeroIsLeft ? "<" : "<=";
    const moved = isZero ? (zeroIsLeft ? zeroReach : -zeroReach) : threshold;
    return splitByThreshold(tree, node, { ...branches, comparison, threshold: moved, missingTrue });
  }
  // All values near zero take the default direction; the threshold decides for all others.
  const zeroFrom = ceilToFloat32(-zeroReach);
  const zeroBehind = nextUp(floorToFloat32(zeroReach));
  const lag = floorToFloat32(threshold) === Infinity ? Infinity : nextUp(floorToFloat32(threshold));
  const { feature, whenTrue: left, whenFalse: right } = branches;
  // At most two regions differ from the lowest one; the order of the cuts determines which.
  const cuts = [zeroFrom, zeroBehind, lag].sort((a, b) => a - b);
  const isLeft = (value: number): boolean => (value >= zeroFrom && value < zeroBehind ? isDefaultLeft : value < lag);
  const lowestLeft = isLeft(-Infinity);
  const bounds: number[] = [];
  let side = lowestLeft;
  for (const cut of cuts) {
    if (isLeft(cut) === side) continue;
    side = !side;
    bounds.push(cut);
  }
  splitBySteps(tree, node, {
    feature,
    whenTrue: lowestLeft ? right : left,
    whenFalse: lowestLeft ? left : right,
    missingTrue: lowestLeft ? !isDefaultLeft : isDefaultLeft,
    bounds: Float32Array.from(bounds),
  });
}

/** Sets of categories as bits, 32 to a number, by their index in a tree. */
class CategorySets {
  readonly #bounds: Float64Array;
  readonly #words: Float64Array;
  readonly #about: string;
  readonly #read = new Set<number>();

  constructor(columns: ReadonlyMap<string, Float64Array>, about: string) {
    this.#bounds = columns.get("cat_boundaries") ?? new Float64Array(1);
    this.#words = columns.get("cat_threshold") ?? new Float64Array(0);
    this.#about = about;
    for (const [position, begin] of this.#bounds.entries()) {
      if (!(begin >= (this.#bounds[position - 1] ?? 0)))
        throw invalidForest(about, "has cat_boundaries that do not ascend");
    }
  }

  boundsOf(set: number, node: number): Float32Array {
    const [begin, end] = [this.#bounds[set], this.#bounds[set + 1]];
    const isThere = begin !== undefined && end !== undefined && end <= this.#words.length;
    // Each set belongs to one split: shared sets could make a small file take long to read.
    if (!isThere || this.#read.has(set)) throw invalidForest(this.#about, `has no categories for split ${node}`);
    this.#read.add(set);
    const about = `split ${node} of ${this.#about}`;
    return categoryBounds(membersOf(this.#words.subarray(begin, end), about), { about, zeroReachesDown: true });
  }
}

function* membersOf(words: Float64Array, about: string): Iterable<number> {
  for (const [position, word] of words.entries()) {
    if (!(Number.isInteger(word) && word >= 0 && word < 2 ** 32))
      throw invalidForest(about, "has categories that are not a bit set");
    for (let bit = 0; bit < 32; bit += 1) if (((word >>> bit) & 1) === 1) yield 32 * position + bit;
  }
}
