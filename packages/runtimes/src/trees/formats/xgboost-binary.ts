import { InferenceError } from "@galatea/base";
import { invalidForest, featuresMax, newTree, NodeCount, outputsMax, type Tree, treesMax } from "../forest.ts";
import { splitBelow } from "../splits.ts";
import { ByteReader } from "./byte-reader.ts";
import { linearBooster, noTrees, type XgboostModel } from "./xgboost-model.ts";
import { xgboostObjective } from "./xgboost-objectives.ts";

/** Sizes of structures, which XGBoost writes in their memory layout. */
const nodeBytes = 20;
const statisticsBytes = 16;
const linearParameterBytes = 136;
const nameBytesMax = 1024;
const defaultLeftBit = 0x80000000;

/** Reads the binary format, which XGBoost wrote up to version 3.0. */
export function readXgboostBinary(
  bytes: Uint8Array,
  { explains = false }: { readonly explains?: boolean },
): XgboostModel {
  const from = new ByteReader(bytes, { littleEndian: true });
  if (from.left >= 4) {
    const magic = from.text(4);
    if (magic === "bs64")
      throw new InferenceError("UNSUPPORTED", "the file is an XGBoost model in Base64, which is no longer read");
    if (magic !== "binf") from.at = 0;
  }
  const head = readHead(from);
  const booster = readName(from);
  const { featureCount, outputCount, objective } = head;
  // Versions before 1 stored the margin instead of the base score.
  const baseScore = head.majorVersion >= 1 ? objective.marginOf(head.baseScore) : head.baseScore;
  const common = {
    precision: "float32" as const,
    featureCount,
    outputCount,
    baseScores: Array.from({ length: outputCount }, () => baseScore),
    transform: objective.transform,
    objective: objective.name,
  };
  if (booster === "gblinear") {
    const weights = readLinearWeights(from);
    skipEnd(from, head);
    return linearBooster({ ...common, weights }, "the file");
  }
  if (booster !== "gbtree" && booster !== "dart") throw noTrees(booster);
  const treeCount = from.int32();
  from.take(156);
  if (treeCount < 0 || treeCount > treesMax) throw invalidForest("the file", `has ${treeCount} trees`);
  const trees: Tree[] = [];
  const nodes = new NodeCount();
  for (let index = 0; index < treeCount; index += 1)
    trees.push(readTree(from, { index, nodes, majorVersion: head.majorVersion, explains }));
  const targets = trees.map(() => from.int32());
  const weights = booster === "dart" ? readWeights(from, treeCount) : null;
  skipEnd(from, head);
  const placed = trees.map((tree, index) =>
    withTarget(tree, { index, target: targets[index] as number, weight: weights?.[index] ?? 1, outputCount }),
  );
  return { kind: "trees", forest: { ...common, trees: placed } };
}

/** Skips attributes (names with values) and metrics (names) at the end of the file, so that a truncated file is detected. */
function skipEnd(from: ByteReader, { hasAttributes, hasMetrics }: ReturnType<typeof readHead>): void {
  if (hasAttributes) skipTexts(from, 2);
  if (hasMetrics) skipTexts(from, 1);
}

function readLinearWeights(from: ByteReader): Float32Array {
  from.take(linearParameterBytes);
  const count = from.uint64();
  const at = from.takeElements(count, 4);
  const lag = from.at;
  from.at = at;
  const weights = Float32Array.from({ length: count }, () => from.float32());
  from.at = lag;
  return weights;
}

function readHead(from: ByteReader) {
  const baseScore = from.float32();
  const featureCount = from.uint32();
  const classCount = from.int32();
  const hasAttributes = from.int32() !== 0;
  const hasMetrics = from.int32() !== 0;
  const majorVersion = from.uint32();
  from.take(4);
  const targetCount = from.uint32();
  from.take(104);
  const outputCount = Math.max(1, classCount, targetCount);
  if (
    featureCount < 1 ||
    featureCount > featuresMax ||
    outputCount > outputsMax ||
    (classCount > 1 && targetCount > 1)
  ) {
    throw invalidForest(
      "the file",
      `is not an XGBoost model: it has ${featureCount} features, ${classCount} classes and ${targetCount} targets`,
    );
  }
  if (!Number.isFinite(baseScore)) throw invalidForest("the file", "has a base score that is not a number");
  return {
    baseScore,
    featureCount,
    outputCount,
    majorVersion,
    hasAttributes,
    hasMetrics,
    objective: xgboostObjective(readName(from)),
  };
}

function readName(from: ByteReader): string {
  const byteLength = from.uint64();
  if (byteLength > nameBytesMax)
    throw invalidForest("the file", `is not an XGBoost model: it has a name of ${byteLength} bytes`);
  return from.text(byteLength);
}

interface TreeReading {
  readonly index: number;
  /** Counts the nodes of all trees of the model. */
  readonly nodes: NodeCount;
  readonly majorVersion: number;
  readonly explains: boolean;
}

function readTree(from: ByteReader, { index, nodes, majorVersion, explains }: TreeReading): Tree {
  from.take(4);
  const nodeCount = from.int32();
  from.take(12);
  const vectorLength = from.int32();
  from.take(124);
  nodes.add(nodeCount, `tree ${index}`);
  if (vectorLength > 1)
    throw new InferenceError(
      "UNSUPPORTED",
      `tree ${index} has vectors as leaves, which the binary format does not support`,
    );
  const nodesAt = from.takeElements(nodeCount, nodeBytes + statisticsBytes);
  const lag = from.at;
  const covers = explains ? new Float32Array(nodeCount) : null;
  const tree = { ...newTree(nodeCount, 0), covers };
  from.at = nodesAt;
  for (let node = 0; node < nodeCount; node += 1) {
    from.take(4);
    const left = from.int32();
    const right = from.int32();
    const feature = from.uint32();
    const value = from.float32();
    if (left === -1) tree.leafWeights[node] = value;
    else {
      const missingTrue = feature >= defaultLeftBit;
      const complete = { feature: missingTrue ? feature - defaultLeftBit : feature, threshold: value };
      splitBelow(tree, node, { ...complete, whenTrue: left, whenFalse: right, missingTrue });
    }
  }
  // The statistics of a node are four float32: the gain, the cover, and two that are not needed.
  if (covers !== null) {
    for (let node = 0; node < nodeCount; node += 1) {
      from.at = nodesAt + nodeCount * nodeBytes + node * statisticsBytes + 4;
      covers[node] = from.float32();
    }
  }
  from.at = lag;
  // Skips the leaf vectors, which versions before 2 wrote but did not use.
  if (vectorLength !== 0 && majorVersion < 2) from.takeElements(from.uint64(), 4);
  return tree;
}

function readWeights(from: ByteReader, treeCount: number): Float32Array {
  if (from.uint64() !== treeCount) throw invalidForest("the file", "does not have one weight per tree");
  return Float32Array.from({ length: treeCount }, () => from.float32());
}

function skipTexts(from: ByteReader, textsEach: number): void {
  const count = from.uint64() * textsEach;
  for (let index = 0; index < count; index += 1) from.takeElements(from.uint64(), 1);
}

interface Role {
  readonly index: number;
  readonly target: number;
  readonly weight: number;
  readonly outputCount: number;
}

function withTarget(tree: Tree, { index, target, weight, outputCount }: Role): Tree {
  if (target < 0 || target >= outputCount)
    throw invalidForest(`tree ${index}`, `adds to output ${target} of ${outputCount}`);
  return { ...tree, target, leafWeights: tree.leafWeights.map((value) => Math.fround(Math.fround(value) * weight)) };
}
