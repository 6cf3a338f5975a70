import { InferenceError } from "../../../base/index.ts";
import {
  broken,
  featuresMax,
  type Forest,
  NodeCount,
  outputsMax,
  type Transform,
  type Tree,
  treesMax,
} from "../forest.ts";
import { ByteReader } from "./byte-reader.ts";
import { readTreeliteTree, type TreeliteNumber } from "./treelite-tree.ts";

/** Number types by their code. */
const floatTypes: Readonly<Record<number, TreeliteNumber>> = { 2: "float32", 3: "float64" };
const postprocessorBytesMax = 256;

/** Reads a checkpoint that treelite 4 wrote; its layout is treelite's serialization format v4. */
export function readTreeliteCheckpoint(
  bytes: Uint8Array,
  { explains = false }: { readonly explains?: boolean },
): Forest {
  const from = new ByteReader(bytes, { littleEndian: true });
  const version = [from.int32(), from.int32(), from.int32()];
  if (version[0] !== 4) {
    throw new InferenceError(
      "UNSUPPORTED",
      `the file is no checkpoint of treelite 4, but says version ${version.join(".")}: load the model with treelite 4 and serialize it again`,
    );
  }
  const thresholds = floatTypes[from.uint8()];
  const leaves = floatTypes[from.uint8()];
  if (thresholds === undefined || leaves !== thresholds)
    throw broken("the file", "has thresholds and leaves of a type that is none");
  const treeCount = from.uint64();
  if (treeCount > treesMax) throw broken("the file", `has ${treeCount} trees`);
  const head = readHead(from, treeCount);
  skipOptionalFields(from);
  const trees: Tree[] = [];
  const nodes = new NodeCount();
  for (let index = 0; index < treeCount; index += 1) {
    const [target, outputClass] = [head.targets[index] as number, head.classes[index] as number];
    const role = roleOf({ target, outputClass, index }, head);
    trees.push(
      readTreeliteTree(from, {
        index,
        number: thresholds,
        outputCount: head.outputCount,
        target: role,
        nodes,
        explains,
      }),
    );
    skipOptionalFields(from);
    skipOptionalFields(from);
  }
  if (from.left > 0) throw broken("the file", `goes on behind its last tree, at ${from.at}`);
  const { featureCount, outputCount, baseScores, transform } = head;
  if (head.averages) shareOut(trees, outputCount);
  return { featureCount, outputCount, trees, baseScores, transform };
}

interface Head {
  readonly featureCount: number;
  readonly averages: boolean;
  readonly targetCount: number;
  readonly classCount: number;
  readonly outputCount: number;
  readonly targets: readonly number[];
  readonly classes: readonly number[];
  readonly transform: Transform;
  readonly baseScores: readonly number[];
}

function readHead(from: ByteReader, treeCount: number): Head {
  const featureCount = from.int32();
  from.uint8();
  const averages = from.uint8() === 1;
  const targetCount = from.int32();
  const classCounts = readIntegers(from);
  const leafShape = readIntegers(from);
  const [targets, classes] = [readIntegers(from), readIntegers(from)];
  const postprocessor = readText(from, postprocessorBytesMax);
  const transform = transformOf(postprocessor, { alpha: from.float32(), ratio: from.float32() });
  const baseScores = Array.from({ length: readCount(from, 8) }, () => from.float64());
  from.take(readCount(from, 1));
  const classCount = classCounts[0] ?? 0;
  const outputCount = targetCount * classCount;
  const isPlausible = featureCount >= 1 && featureCount <= featuresMax && targetCount >= 1 && classCount >= 1;
  if (!isPlausible || targetCount !== classCounts.length || leafShape.length !== 2 || outputCount > outputsMax) {
    throw broken("the file", `has ${featureCount} features, ${targetCount} targets and ${classCount} classes`);
  }
  if (targetCount > 1 && classCounts.some((count) => count > 1)) {
    throw new InferenceError(
      "UNSUPPORTED",
      "the model classifies for several targets at once, which this backend does not run",
    );
  }
  if (targets.length !== treeCount || classes.length !== treeCount || baseScores.length !== outputCount) {
    throw broken("the file", "has lists of targets, classes and base scores that do not fit together");
  }
  return { featureCount, averages, targetCount, classCount, outputCount, targets, classes, transform, baseScores };
}

function readCount(from: ByteReader, elementBytes: number): number {
  const count = from.uint64();
  const at = from.at;
  from.takeElements(count, elementBytes);
  from.at = at;
  return count;
}

function readIntegers(from: ByteReader): readonly number[] {
  return Array.from({ length: readCount(from, 4) }, () => from.int32());
}

function readText(from: ByteReader, byteLengthMax: number): string {
  const byteLength = readCount(from, 1);
  if (byteLength > byteLengthMax) throw broken("the file", `has a name of ${byteLength} bytes`);
  return from.text(byteLength);
}

/** Fields of later versions, by name, each with its bytes. */
function skipOptionalFields(from: ByteReader): void {
  const count = from.int32();
  if (count < 0) throw broken("the file", `has ${count} optional fields, at ${from.at - 4}`);
  for (let index = 0; index < count; index += 1) {
    from.take(readCount(from, 1));
    const elementBytes = from.uint64();
    from.takeElements(from.uint64(), elementBytes);
  }
}

/** A tree whose leaves are vectors has -1 for what the vector runs over: there is one such list at most, because either has one member. */
function roleOf(
  { target, outputClass, index }: { readonly target: number; readonly outputClass: number; readonly index: number },
  { targetCount, classCount }: Pick<Head, "targetCount" | "classCount">,
): number | "every" {
  const [place, count] = classCount > 1 ? [outputClass, classCount] : [target, targetCount];
  const other = classCount > 1 ? target : outputClass;
  if (other !== 0 && other !== -1) throw broken(`tree ${index}`, `is of class ${outputClass} and target ${target}`);
  if (place === -1) return "every";
  if (place < 0 || place >= count) throw broken(`tree ${index}`, `adds to output ${place} of ${count}`);
  return place;
}

/** Divides by the number of trees that add to an output. */
function shareOut(trees: readonly Tree[], outputCount: number): void {
  const counts = new Float64Array(outputCount);
  for (const { target } of trees) {
    if (target === "every") for (const output of counts.keys()) counts[output] = (counts[output] as number) + 1;
    else counts[target] = (counts[target] as number) + 1;
  }
  for (const { target, leafWeights } of trees) {
    for (const place of leafWeights.keys()) {
      const count = counts[target === "every" ? place % outputCount : target] as number;
      leafWeights[place] = (leafWeights[place] as number) / count;
    }
  }
}

function transformOf(name: string, { alpha, ratio }: { readonly alpha: number; readonly ratio: number }): Transform {
  switch (name) {
    case "identity":
    case "identity_multiclass":
      return { kind: "identity" };
    case "sigmoid":
    case "multiclass_ova":
      return { kind: "sigmoid", alpha };
    case "softmax":
      return { kind: "softmax" };
    case "exponential":
      return { kind: "exponential" };
    case "logarithm_one_plus_exp":
      return { kind: "softplus" };
    case "hinge":
      return { kind: "hinge" };
    case "signed_square":
      return { kind: "signed-square" };
    case "exponential_standard_ratio":
      return { kind: "exponential-ratio", ratio };
    default:
      throw new InferenceError("UNSUPPORTED", `Post-processor named '${name}' not found`);
  }
}
