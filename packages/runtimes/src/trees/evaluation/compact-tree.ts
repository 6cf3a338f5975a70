import { type Forest, nodesInOrder, type Tree } from "../forest.ts";
import { keyMax, keyOfThreshold } from "./float-keys.ts";
import type { ValueColumns } from "./value-columns.ts";
import { columnBytes, node as layout } from "./walk-module.ts";

/** The address of a tree's root, and the number of levels to evaluate. */
export interface PlacedTree {
  readonly root: number;
  readonly levels: number;
  /** True if some paths are longer than `levels`. */
  readonly hasMoreLevels: boolean;
}

/** The memory to which nodes are written. */
export interface NodeSpace {
  readonly integers: Int32Array;
  readonly floats: Float32Array;
  /** Offset of the covers of nodes, one for each node; null when not requested. */
  readonly coversAt: number | null;
  /** Allocates `count` consecutive nodes after earlier ones; returns their address. */
  readonly take: (count: number) => number;
}

interface Placing {
  readonly tree: Tree;
  readonly space: NodeSpace;
  readonly columns: ValueColumns;
  /** Offset of the weights of leaves with several. */
  readonly weightsAt: number;
  /** Addresses of leaves with terms, by node; null when leaves have weights. */
  readonly linearPlaces: Int32Array | null;
  /** Addresses of both children, by node: children of shared nodes are written once. */
  readonly children: Map<number, number>;
  readonly planned: Plans;
}

/** A node to be written at an address, or a search among its bounds, for its segments from `first` to `last`. */
interface Planned {
  readonly at: number;
  readonly node: number;
  readonly pieces: BoundRange | null;
}

interface BoundRange {
  readonly first: number;
  readonly last: number;
}

/** The queue of unwritten nodes: a large tree has millions. */
class Plans {
  readonly #columns: Int32Array;
  #begin = 0;
  #end = 0;

  constructor(countMax: number) {
    this.#columns = new Int32Array(4 * countMax);
  }

  add({ at, node, pieces }: Planned): void {
    this.#columns.set([at, node, pieces?.first ?? -1, pieces?.last ?? -1], this.#end);
    this.#end += 4;
  }

  next(): Planned | null {
    if (this.#begin === this.#end) return null;
    const [at = 0, node = 0, first = 0, last = 0] = this.#columns.subarray(this.#begin, this.#begin + 4);
    this.#begin += 4;
    return { at, node, pieces: first === -1 ? null : { first, last } };
  }
}

/** Returns the maximum number of a tree's nodes when it is written. Throws for an invalid tree. */
export function placedNodeCount(tree: Tree, forest: Forest, about: string): number {
  return nodesInOrder(tree, forest, about).length + searchedNodeCount(tree);
}

function searchedNodeCount({ steps }: Tree): number {
  let count = 0;
  for (const bounds of steps.values()) count += 2 * bounds.length;
  return count;
}

/** Writes a tree level by level, so that the nodes that most rows reach are close together. */
export function placeTree(
  tree: Tree,
  { forest, ...where }: Pick<Placing, "space" | "columns" | "weightsAt" | "linearPlaces"> & { readonly forest: Forest },
): PlacedTree {
  const root = where.space.take(1);
  const order = nodesInOrder(tree, forest, "a tree");
  const planned = new Plans(order.length + searchedNodeCount(tree));
  const placing: Placing = { ...where, tree, children: new Map(), planned };
  planned.add({ at: root, node: 0, pieces: null });
  for (let plan = planned.next(); plan !== null; plan = planned.next()) placeNode(plan, placing);
  return { root, ...levelsOf(tree, order) };
}

/** A tree of at most this many levels is evaluated to its end without checking whether all paths have reached leaves. */
const blindLevelsMax = 8;

function levelsOf(tree: Tree, order: Int32Array): Omit<PlacedTree, "root"> {
  const depths = new Int32Array(tree.left.length);
  let leafCount = 0;
  let leafDepths = 0;
  let deepest = 0;
  for (const node of order) {
    const depth = depths[node] as number;
    deepest = Math.max(deepest, depth);
    if (tree.left[node] === -1) {
      leafCount += 1;
      leafDepths += depth;
      continue;
    }
    const below = depth + Math.max(1, Math.ceil(Math.log2(1 + (tree.steps.get(node)?.length ?? 0))));
    depths[tree.left[node] as number] = below;
    depths[tree.right[node] as number] = below;
  }
  // Only when children follow their parents can the evaluation detect that a path continues; copied nodes follow their children.
  const goesOn = deepest > blindLevelsMax && tree.steps.size === 0;
  return { levels: goesOn ? Math.floor(leafDepths / leafCount) : deepest, hasMoreLevels: goesOn };
}

function placeNode(plan: Planned, placing: Placing): void {
  const { node } = plan;
  const { tree, space, children, planned } = placing;
  if (space.coversAt !== null && tree.covers !== null)
    space.floats[(space.coversAt + (plan.at / layout.bytes) * 4) >> 2] = tree.covers[node] as number;
  if (tree.left[node] === -1) return placeLeaf(plan, placing);
  const isWhole = plan.pieces === null;
  const known = isWhole ? children.get(node) : undefined;
  const pair = known ?? space.take(2);
  if (known === undefined && isWhole && tree.steps.size > 0) children.set(node, pair);
  const split = splitOf(tree, plan);
  placeSplit(plan, placing, { ...split, pair });
  if (known !== undefined) return;
  planned.add({ at: pair, ...split.whenTrue });
  planned.add({ at: pair + layout.bytes, ...split.whenFalse });
}

interface Split {
  readonly threshold: number;
  readonly missingTrue: boolean;
  readonly whenTrue: Omit<Planned, "at">;
  readonly whenFalse: Omit<Planned, "at">;
}

function splitOf(tree: Tree, { node, pieces }: Planned): Split {
  const bounds = tree.steps.get(node);
  const missingLeft = tree.missingLeft[node] === 1;
  if (bounds === undefined || bounds.length === 0) {
    return {
      // An empty set has nothing on its left.
      threshold: bounds === undefined ? (tree.thresholds[node] as number) : -Infinity,
      missingTrue: missingLeft,
      whenTrue: { node: tree.left[node] as number, pieces: null },
      whenFalse: { node: tree.right[node] as number, pieces: null },
    };
  }
  const { first, last } = pieces ?? { first: 0, last: bounds.length };
  const middle = (first + last) >> 1;
  return {
    threshold: bounds[middle] as number,
    // A missing value goes to the first segment of its side.
    missingTrue: (missingLeft ? 1 : 0) <= middle,
    whenTrue: rangeOf(tree, node, { first, last: middle }),
    whenFalse: rangeOf(tree, node, { first: middle + 1, last }),
  };
}

/** Returns the branch of a single segment: odd segments are on the left. */
function rangeOf(tree: Tree, node: number, pieces: BoundRange): Omit<Planned, "at"> {
  if (pieces.first < pieces.last) return { node, pieces };
  return { node: (pieces.first % 2 === 1 ? tree.left[node] : tree.right[node]) as number, pieces: null };
}

function placeSplit(
  { at, node }: Planned,
  { tree, space, columns }: Placing,
  { threshold, missingTrue, pair }: Pick<Split, "threshold" | "missingTrue"> & { readonly pair: number },
): void {
  const column = columns.place(tree.features[node] as number, { missingBelow: missingTrue });
  space.integers[(at + layout.key) >> 2] = keyOfThreshold(threshold);
  space.integers[(at + layout.column) >> 2] = column * columnBytes;
  space.integers[(at + layout.children) >> 2] = pair;
}

/** Evaluation stays at a leaf: its first child is the leaf itself, and every value is below its key. */
function placeLeaf({ at, node }: Planned, { tree, space, weightsAt, linearPlaces }: Placing): void {
  space.integers[(at + layout.key) >> 2] = keyMax;
  space.integers[(at + layout.column) >> 2] = 0;
  space.integers[(at + layout.children) >> 2] = at;
  const begin = tree.right[node] as number;
  if (linearPlaces !== null) space.integers[(at + layout.weight) >> 2] = linearPlaces[node] as number;
  else if (tree.target === "every") space.integers[(at + layout.weight) >> 2] = weightsAt + 4 * begin;
  else space.floats[(at + layout.weight) >> 2] = tree.leafWeights[begin] as number;
}
