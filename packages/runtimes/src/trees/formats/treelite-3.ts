import { InferenceError } from "@galatea/base";
import {
  invalidForest,
  featuresMax,
  type Forest,
  newTree,
  newVectorTree,
  NodeCount,
  outputsMax,
  type Tree,
  treesMax,
} from "../forest.ts";
import { categoryBounds, splitBySteps, splitByThreshold } from "../splits.ts";
import type { ByteReader } from "./byte-reader.ts";
import { averageTreelite, treeliteTransform } from "./treelite-forest.ts";
import { treeliteComparisons, TreeliteColumns, TreeliteLists, type TreeliteNumber } from "./treelite-tree.ts";

/** Number types, by code in the file. */
export const treeliteNumbers: Readonly<Record<number, TreeliteNumber>> = { 2: "float32", 3: "float64" };

/** Kinds of models, by code in the file: one number per row, trees that each add to one class, or leaves with a number per class. */
const tasks = ["numbers", "trees by class", "vectors"] as const;
const transformBytes = 256;
const defaultLeftBit = 0x80000000;
const categoricalSplit = 2;

interface Head {
  readonly number: TreeliteNumber;
  readonly treeCount: number;
  readonly featureCount: number;
  readonly task: (typeof tasks)[number];
  readonly averages: boolean;
  readonly outputCount: number;
}

/** Reads the file after its version: treelite's structures in the memory layout of a 64-bit machine. */
export function readTreelite3(from: ByteReader, { explains }: { readonly explains: boolean }): Forest {
  const head = readHead(from);
  const { featureCount, outputCount, task, treeCount } = head;
  const at = from.take(transformBytes);
  const name = Buffer.from(from.bytes.subarray(at, at + transformBytes))
    .toString("latin1")
    .replace(/\0.*$/s, "");
  // Treelite 4 converts scores to a class in the same way.
  const transform = treeliteTransform(name === "max_index" ? "softmax" : name, {
    alpha: from.float32(),
    ratio: from.float32(),
  });
  const bias = from.float32();
  skipExtras(from);
  const trees: Tree[] = [];
  const nodes = new NodeCount();
  for (let index = 0; index < treeCount; index += 1) {
    const target = task === "vectors" ? "every" : task === "trees by class" ? index % outputCount : 0;
    trees.push(readTree(from, { index, head, target, nodes, explains }));
    skipExtras(from);
    skipExtras(from);
  }
  if (from.left > 0) throw invalidForest("the file", `continues after its last tree, at ${from.at}`);
  if (head.averages) averageTreelite(trees, outputCount);
  return {
    precision: "float64",
    featureCount,
    outputCount,
    trees,
    baseScores: Array.from({ length: outputCount }, () => bias),
    transform,
  };
}

function readHead(from: ByteReader): Head {
  const number = treeliteNumbers[from.uint8()];
  if (number === undefined || treeliteNumbers[from.uint8()] !== number)
    throw invalidForest("the file", "has thresholds and leaves of an unknown type");
  const treeCount = from.uint64();
  if (treeCount > treesMax) throw invalidForest("the file", `has ${treeCount} trees`);
  const featureCount = from.int32();
  const [taskCode, averages] = [from.uint8(), from.uint8() === 1];
  const task = tasks[taskCode];
  // Skips the kind of output, the flag for trees by class, which duplicates the task, and two bytes of padding.
  from.take(4);
  const [classCount, vectorLength] = [from.uint32(), from.uint32()];
  if (task === undefined) {
    throw new InferenceError("UNSUPPORTED", `the model does a task (${taskCode}) that this backend does not run`);
  }
  const outputCount = task === "numbers" ? 1 : classCount;
  const isPlausible = featureCount >= 1 && featureCount <= featuresMax && outputCount >= 1 && outputCount <= outputsMax;
  if (!isPlausible || vectorLength !== (task === "vectors" ? classCount : 1))
    throw invalidForest(
      "the file",
      `has ${featureCount} features, ${classCount} classes and leaves of ${vectorLength} numbers`,
    );
  return { number, treeCount, featureCount, task, averages, outputCount };
}

/** Reads the number of optional fields. Version 3.9 writes none, so throws InferenceError if there are any. */
function skipExtras(from: ByteReader): void {
  const count = from.int32();
  if (count !== 0) throw invalidForest("the file", `has ${count} optional fields, at ${from.at - 4}`);
}

interface TreeReading {
  readonly index: number;
  readonly head: Head;
  readonly target: number | "every";
  /** Counts the nodes of all trees of the model. */
  readonly nodes: NodeCount;
  readonly explains: boolean;
}

function readTree(from: ByteReader, { index, head, target, nodes, explains }: TreeReading): Tree {
  const about = `tree ${index}`;
  const nodeCount = from.int32();
  nodes.add(nodeCount, about);
  from.uint8();
  if (from.uint64() !== nodeCount) throw invalidForest(about, "does not have the declared number of nodes");
  const nodeBytes = head.number === "float32" ? 48 : 56;
  const nodesAt = from.takeElements(nodeCount, nodeBytes);
  const columns = new TreeliteColumns(from, about);
  const vectors = TreeliteLists.take(columns, { kind: head.number, nodeCount, about });
  const values = columns.take("uint32");
  const offsets = columns.takeFor(nodeCount + 1, "uint64");
  const ends = { at: (node: number) => offsets.at(node + 1) };
  const categories = new TreeliteLists({ values, begins: offsets, ends }, about);
  const lag = from.at;
  const placed =
    target === "every" ? newVectorTree(nodeCount, new Float64Array(vectors.count)) : newTree(nodeCount, target);
  const covers = explains ? new Float64Array(nodeCount) : null;
  const tree = { ...placed, covers };
  let weightCount = 0;
  for (let node = 0; node < nodeCount; node += 1) {
    from.at = nodesAt + node * nodeBytes;
    const written = readNode(from, head.number);
    if (covers !== null) covers[node] = coverOf(written, about);
    if (written.left === -1) {
      if (target === "every") {
        tree.leafWeights.set(vectors.exactly(head.outputCount, node), weightCount);
        tree.right[node] = weightCount;
        weightCount += head.outputCount;
      } else {
        tree.leafWeights[node] = written.value;
      }
      continue;
    }
    splitNode(tree, node, { written, categories, about });
  }
  from.at = lag;
  return tree;
}

interface WrittenNode {
  readonly left: number;
  readonly right: number;
  /** Index of the feature; the highest bit is the direction of missing values. */
  readonly feature: number;
  /** The threshold of a split, or the value of a leaf. */
  readonly value: number;
  readonly dataCount: number | null;
  readonly hessians: number | null;
  readonly kind: number;
  readonly comparison: number;
  readonly categoriesRight: boolean;
}

function readNode(from: ByteReader, number: TreeliteNumber): WrittenNode {
  const [left, right, feature] = [from.int32(), from.int32(), from.uint32()];
  if (number === "float64") from.take(4);
  const value = number === "float64" ? from.float64() : from.float32();
  const [dataCount, hessians] = [from.uint64(), from.float64()];
  from.take(8);
  const [kind, comparison] = [from.int8(), from.int8()];
  const [hasCount, hasHessians] = [from.uint8() === 1, from.uint8() === 1];
  from.take(1);
  const categoriesRight = from.uint8() === 1;
  return {
    left,
    right,
    feature,
    value,
    dataCount: hasCount ? dataCount : null,
    hessians: hasHessians ? hessians : null,
    kind,
    comparison,
    categoriesRight,
  };
}

function coverOf({ dataCount, hessians }: WrittenNode, about: string): number {
  const cover = dataCount ?? hessians;
  if (cover !== null) return cover;
  throw new InferenceError("UNSUPPORTED", `${about} has no cover of its nodes, which treeshap_output needs`);
}

interface SplitParts {
  readonly written: WrittenNode;
  readonly categories: TreeliteLists;
  readonly about: string;
}

function splitNode(tree: Tree, node: number, { written, categories, about }: SplitParts): void {
  const { left, right, feature: code, value: threshold, kind, categoriesRight: isRight } = written;
  const isDefaultLeft = code >= defaultLeftBit;
  const feature = isDefaultLeft ? code - defaultLeftBit : code;
  if (kind === categoricalSplit) {
    const bounds = categoryBounds(categories.of(node).sort(), {
      about: `node ${node} of ${about}`,
      zeroReachesDown: false,
    });
    const [whenTrue, whenFalse] = isRight ? [right, left] : [left, right];
    return splitBySteps(tree, node, { feature, whenTrue, whenFalse, missingTrue: isRight !== isDefaultLeft, bounds });
  }
  const comparison = treeliteComparisons[written.comparison] ?? null;
  if (comparison === null || Number.isNaN(threshold)) throw invalidForest(about, `has node ${node} of an unknown kind`);
  splitByThreshold(tree, node, {
    feature,
    whenTrue: left,
    whenFalse: right,
    missingTrue: isDefaultLeft,
    comparison,
    threshold,
  });
}
