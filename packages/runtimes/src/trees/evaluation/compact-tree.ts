import { type Forest, nodesInOrder, type Tree } from "../forest.ts";
import { keyMax, keyOfThreshold } from "./float-keys.ts";
import type { ValueColumns } from "./value-columns.ts";
import { columnBytes, node as layout } from "./walk-module.ts";

/** A tree in shared memory: the address of its root, and the number of levels to evaluate before checking for unfinished paths. */
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
  /** Offset of the covers of all nodes; null if they are not requested. */
  readonly coversAt: number | null;
  /** Allocates `count` consecutive nodes, and returns the address of the first. Addresses ascend. */
  readonly take: (count: number) => number;
}

interface Placing {
  readonly tree: Tree;
  readonly space: NodeSpace;
  readonly columns: ValueColumns;
  /** Offset of the weights of leaves that have one weight for each output. */
  readonly weightsAt: number;
  /** Addresses of the linear models of leaves, by node; null if leaves have only weights. */
  readonly linearPlaces: Int32Array | null;
  /** Address of the two children, by node. A node that is written several times, because of `steps`, shares its children. */
  readonly children: Map<number, number>;
  readonly planned: Plans;
}

/**
 * A node to be written to the address `at`. If `chunks` is not null, it is a step of the binary search among the bounds of `node`, which
 * has narrowed the search to the segments from `first` to `last`.
 */
interface Planned {
  readonly at: number;
  readonly node: number;
  readonly pieces: BoundRange | null;
}

interface BoundRange {
  readonly first: number;
  readonly last: number;
}

/** The queue of unwritten nodes, in a typed array because a large tree has millions of nodes. */
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

/** Returns the maximum number of nodes that `placeTree` writes. Throws InferenceError for an invalid tree. */
export function placedNodeCount(tree: Tree, forest: Forest, about: string): number {
  return nodesInOrder(tree, forest, about).length + searchedNodeCount(tree);
}

function searchedNodeCount({ steps }: Tree): number {
  let count = 0;
  for (const bounds of steps.values()) count += 2 * bounds.length;
  return count;
}

/** Writes a tree level by level: the upper levels, which most rows read, are then close together in memory. */
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

/** A tree of at most this many levels is evaluated for all its levels, without checking whether all paths have reached leaves. */
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
  // The evaluation detects unfinished paths by ascending addresses. Trees with `steps` have children at lower addresses than parents.
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
      // Without bounds, no value goes left, because none is less than -Infinity.
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
    // Missing values go to segment 1 if they go left, else to segment 0.
    missingTrue: (missingLeft ? 1 : 0) <= middle,
    whenTrue: rangeOf(tree, node, { first, last: middle }),
    whenFalse: rangeOf(tree, node, { first: middle + 1, last }),
  };
}

/** Returns the next search step among several segments, or the child of a single segment: odd segments go left. */
function rangeOf(tree: Tree, node: number, chunks: BoundRange): Omit<Planned, "at"> {
  if (chunks.first < chunks.last) return { node, pieces: chunks };
  return { node: (chunks.first % 2 === 1 ? tree.left[node] : tree.right[node]) as number, pieces: null };
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

/** Writes a leaf. A path stays at a leaf: its first child is the leaf itself, and every value is less than its key. */
function placeLeaf({ at, node }: Planned, { tree, space, weightsAt, linearPlaces }: Placing): void {
  space.integers[(at + layout.key) >> 2] = keyMax;
  space.integers[(at + layout.column) >> 2] = 0;
  space.integers[(at + layout.children) >> 2] = at;
  const begin = tree.right[node] as number;
  if (linearPlaces !== null) space.integers[(at + layout.weight) >> 2] = linearPlaces[node] as number;
  else if (tree.target === "every") space.integers[(at + layout.weight) >> 2] = weightsAt + 4 * begin;
  else space.floats[(at + layout.weight) >> 2] = tree.leafWeights[begin] as number;
}
