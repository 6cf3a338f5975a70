import { InferenceError } from "@galatea/base";
import { type Forest, nodesMax, type Precision, type Transform, type Tree } from "../forest.ts";
import { type NodeSpace, type PlacedTree, placedNodeCount, placeTree } from "./compact-tree.ts";
import { type Explained, explainedOf } from "./explained-forest.ts";
import { keyMax } from "./float-keys.ts";
import { checkLinear, linearBytes, linearSteps, placeLinear } from "./linear-leaves.ts";
import { ValueColumns } from "./value-columns.ts";
import {
  columnBytes,
  pathCount,
  linearLeaves,
  node as nodeLayout,
  outputBytes,
  tree as treeLayout,
} from "./walk-module.ts";
import { memoryPageBytes, memoryPagesMax } from "./wasm-code.ts";
import { webAssembly, type WasmMemory } from "./web-assembly.ts";

/**
 * A forest in shared memory: nodes, weights, trees, and a workspace for each thread. The object can be sent to another thread: the memory
 * is then shared, and all other fields are plain data.
 */
export interface CompactForest {
  readonly memory: WasmMemory;
  readonly precision: Precision;
  readonly featureCount: number;
  readonly outputCount: number;
  readonly baseScores: readonly number[];
  readonly transform: Transform;
  /**
   * Offset of the first tree, and of the end of the trees. Single rows are evaluated through eight trees at a time, up to `octetsEnd`,
   * which is the end after rounding up to a multiple of eight trees.
   */
  readonly trees: number;
  readonly treesEnd: number;
  readonly octetsEnd: number;
  /** Offset of the list of columns. An entry is twice the feature, plus 1 if missing values are below all numbers. */
  readonly columnsAt: number;
  readonly columnCount: number;
  /**
   * Offset of the first workspace, size and number of workspaces, and the number of groups of eight rows that fit into a workspace.
   */
  readonly workspacesAt: number;
  readonly workspaceBytes: number;
  readonly workspaceCount: number;
  readonly groupsMax: number;
  /** Cost of one row: steps through all trees, and the numbers that are read and written. */
  readonly rowSteps: number;
  /** Data for contributions; null if they are not requested. */
  readonly explained: Explained | null;
}

interface CompactOptions {
  readonly workspaceCount: number;
  /** True to compute contributions of features, for which every node needs a cover. */
  readonly explains?: boolean;
}

/** Target size of a workspace, so that values and sums stay in a processor's second-level cache. */
const workspaceBytesGoal = 96 * 1024;
const groupsAtOnceMax = 32;
/** Cost of one output number, in steps: its transform may be an exponential. */
const numberSteps = 8;
/** Maximum size of all nodes: the sum of eight addresses must fit into 32 bits. */
const nodeBytesMax = 2 ** 29;

/** Writes a forest to new shared memory, for `workspaceCount` threads. Throws InferenceError for invalid or too many trees. */
export function compactForest(forest: Forest, { workspaceCount, explains = false }: CompactOptions): CompactForest {
  const { trees, precision, featureCount, outputCount, baseScores, transform } = forest;
  const nodeCount = countNodes(forest);
  const weightCount = trees.reduce((sum, tree) => sum + (tree.target === "every" ? tree.leafWeights.length : 0), 0);
  const recordCount = pathCount * Math.max(1, Math.ceil(trees.length / pathCount));
  // A root takes the space of two nodes, so that no pair of siblings spans two cache lines.
  const nodesEnd = (nodeCount + trees.length + 2) * nodeLayout.bytes;
  const linearAt = Math.ceil((nodesEnd + 4 * weightCount) / 8) * 8;
  const weightsEnd = linearAt + trees.reduce((sum, tree) => sum + linearBytes(tree), 0);
  const coversEnd = weightsEnd + (explains ? nodesEnd / 4 : 0);
  const recordsAt = Math.ceil(coversEnd / 64) * 64;
  const recordsEnd = recordsAt + recordCount * treeLayout.bytes;
  if (nodesEnd > nodeBytesMax) throw tooLarge("nodes");
  const memory = newMemory(recordsEnd);
  const [integers, floats] = [new Int32Array(memory.buffer), new Float32Array(memory.buffer)];
  const columns = new ValueColumns();
  const space = nodeSpace({ integers, floats, coversAt: explains ? weightsEnd : null });
  const doubles = new Float64Array(memory.buffer);
  let weightsAt = nodesEnd;
  let termsAt = linearAt;
  const placed = trees.map((tree) => {
    const linearPlaces = placeLinear(tree, { integers, doubles, columns, at: termsAt });
    termsAt += linearBytes(tree);
    const one = placeTree(tree, { forest, space, columns, weightsAt, linearPlaces });
    if (tree.target === "every") {
      floats.set(tree.leafWeights, weightsAt >> 2);
      weightsAt += 4 * tree.leafWeights.length;
    }
    return one;
  });
  writeRecords(forest, placed, { integers, at: recordsAt, count: recordCount, empty: placeEmpty(space) });
  // A group must have a column even if all trees are single leaves, which use no feature.
  if (columns.count === 0) columns.place(0, { missingBelow: false });
  const columnsAt = recordsEnd;
  const workspacesAt = Math.ceil((columnsAt + 4 * columns.count) / 64) * 64;
  const workspace = workspaceSize({ columnCount: columns.count, outputCount });
  growMemory(memory, workspacesAt + workspaceCount * workspace.workspaceBytes);
  new Int32Array(memory.buffer).set(columns.list(), columnsAt >> 2);
  return {
    memory,
    precision,
    featureCount,
    outputCount,
    baseScores,
    transform,
    trees: recordsAt,
    treesEnd: recordsAt + trees.length * treeLayout.bytes,
    octetsEnd: recordsEnd,
    columnsAt,
    columnCount: columns.count,
    workspacesAt,
    workspaceCount,
    ...workspace,
    rowSteps: columns.count + numberSteps * outputCount + stepsOf(trees, placed),
    explained: explains ? explainedOf(forest, weightsEnd) : null,
  };
}

/** Returns the number of steps that one row takes through all trees. */
function stepsOf(trees: readonly Tree[], placed: readonly PlacedTree[]): number {
  const walked = placed.reduce((sum, { levels }) => sum + levels + 1, 0);
  return trees.reduce((sum, tree) => sum + linearSteps(tree), walked);
}

/** Returns the maximum number of nodes of all trees together. Throws InferenceError for invalid trees. */
function countNodes(forest: Forest): number {
  let count = 0;
  for (const [index, tree] of forest.trees.entries()) {
    count += placedNodeCount(tree, forest, `tree ${index}`);
    checkLinear(tree, forest, `tree ${index}`);
    if (count > nodesMax) {
      throw new InferenceError(
        "UNSUPPORTED",
        `the trees have more than ${nodesMax} nodes, counting the ranges of their categories`,
      );
    }
  }
  return count;
}

function nodeSpace(memory: Omit<NodeSpace, "take">): NodeSpace {
  let end = 0;
  const take = (count: number): number => {
    const at = end;
    // A root has no sibling, but takes the space of two nodes.
    end += Math.max(2, count) * nodeLayout.bytes;
    return at;
  };
  return { ...memory, take };
}

/** Writes a leaf of weight 0, the root of the trees that pad the last group of eight, and returns its address. */
function placeEmpty({ integers, take }: NodeSpace): number {
  const at = take(1);
  integers[(at + nodeLayout.key) >> 2] = keyMax;
  integers[(at + nodeLayout.children) >> 2] = at;
  return at;
}

interface Records {
  readonly integers: Int32Array;
  readonly at: number;
  readonly count: number;
  readonly empty: number;
}

function writeRecords(forest: Forest, placed: readonly PlacedTree[], { integers, at, count, empty }: Records): void {
  for (let index = 0; index < count; index += 1) {
    const record = (at + index * treeLayout.bytes) >> 2;
    const octet = placed.slice(index, index + pathCount);
    const target = forest.trees[index]?.target ?? 0;
    const isLinear = (forest.trees[index]?.linear ?? null) !== null;
    const { root, levels, hasMoreLevels: goesOn } = placed[index] ?? { root: empty, levels: 0, hasMoreLevels: false };
    integers[record + (treeLayout.root >> 2)] = root;
    integers[record + (treeLayout.sums >> 2)] = target === "every" ? 0 : target * outputBytes;
    const weightCount = target === "every" ? forest.outputCount : 0;
    integers[record + (treeLayout.weightCount >> 2)] = isLinear ? linearLeaves : weightCount;
    integers[record + (treeLayout.levels >> 2)] = levels;
    integers[record + (treeLayout.goesOn >> 2)] = goesOn ? 1 : 0;
    integers[record + (treeLayout.octetLevels >> 2)] = Math.max(0, ...octet.map((one) => one.levels));
    integers[record + (treeLayout.octetGoesOn >> 2)] = octet.some((one) => one.hasMoreLevels) ? 1 : 0;
  }
}

function workspaceSize({ columnCount, outputCount }: { readonly columnCount: number; readonly outputCount: number }) {
  const groupBytes = columnCount * columnBytes + outputCount * outputBytes;
  const groupsMax = Math.min(groupsAtOnceMax, Math.max(1, Math.floor(workspaceBytesGoal / groupBytes)));
  // Workspaces begin and end at a cache line, because threads that write to the same cache line slow each other down.
  return { groupsMax, workspaceBytes: Math.ceil((groupsMax * groupBytes) / 64) * 64 };
}

function newMemory(byteLength: number): WasmMemory {
  try {
    return new webAssembly.Memory({ initial: pagesOf(byteLength), maximum: memoryPagesMax, shared: true });
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    throw new InferenceError("UNAVAILABLE", `no memory for trees: ${error.message}`, { cause: error });
  }
}

function growMemory(memory: WasmMemory, byteLength: number): void {
  const pages = pagesOf(byteLength) - memory.buffer.byteLength / memoryPageBytes;
  try {
    if (pages > 0) memory.grow(pages);
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    throw new InferenceError("UNAVAILABLE", `no memory for trees: ${error.message}`, { cause: error });
  }
}

function pagesOf(byteLength: number): number {
  const pages = Math.max(1, Math.ceil(byteLength / memoryPageBytes));
  if (pages > memoryPagesMax) throw tooLarge("weights and columns");
  return pages;
}

function tooLarge(what: string): InferenceError {
  return new InferenceError("UNSUPPORTED", `the trees have more ${what} than their memory was allocated for`);
}
