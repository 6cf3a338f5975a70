import { InferenceError } from "@galatea/base";
import {
  invalidForest,
  featuresMax,
  type Forest,
  NodeCount,
  outputsMax,
  type Transform,
  type Tree,
  treesMax,
} from "../forest.ts";
import { ByteReader } from "./byte-reader.ts";
import { readTreelite3, treeliteNumbers } from "./treelite-3.ts";
import { averageTreelite, treeliteTransform } from "./treelite-forest.ts";
import { readTreeliteTree } from "./treelite-tree.ts";

const postprocessorBytesMax = 256;

/** Reads a checkpoint of treelite 4, or of its predecessor 3.9. */
export function readTreeliteCheckpoint(
  bytes: Uint8Array,
  { explains = false }: { readonly explains?: boolean },
): Forest {
  const from = new ByteReader(bytes, { littleEndian: true });
  const version = [from.int32(), from.int32(), from.int32()];
  if (version[0] === 3 && version[1] === 9) return readTreelite3(from, { explains });
  if (version[0] === 4) return readTreelite4(from, { explains });
  throw new InferenceError(
    "UNSUPPORTED",
    `the file is not a checkpoint of treelite 3.9 or 4: it has version ${version.join(".")}: load the model with treelite 4 and serialize it again`,
  );
}

/** Reads treelite's serialization format v4. */
function readTreelite4(from: ByteReader, { explains }: { readonly explains: boolean }): Forest {
  const thresholds = treeliteNumbers[from.uint8()];
  const leaves = treeliteNumbers[from.uint8()];
  if (thresholds === undefined || leaves !== thresholds)
    throw invalidForest("the file", "has thresholds and leaves of an unknown type");
  const treeCount = from.uint64();
  if (treeCount > treesMax) throw invalidForest("the file", `has ${treeCount} trees`);
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
  if (from.left > 0) throw invalidForest("the file", `continues after its last tree, at ${from.at}`);
  const { featureCount, outputCount, baseScores, transform } = head;
  if (head.averages) averageTreelite(trees, outputCount);
  return { precision: "float64", featureCount, outputCount, trees, baseScores, transform };
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
  const transform = treeliteTransform(postprocessor, { alpha: from.float32(), ratio: from.float32() });
  const baseScores = Array.from({ length: readCount(from, 8) }, () => from.float64());
  from.take(readCount(from, 1));
  const classCount = classCounts[0] ?? 0;
  const outputCount = targetCount * classCount;
  const isPlausible = featureCount >= 1 && featureCount <= featuresMax && targetCount >= 1 && classCount >= 1;
  if (!isPlausible || targetCount !== classCounts.length || leafShape.length !== 2 || outputCount > outputsMax) {
    throw invalidForest("the file", `has ${featureCount} features, ${targetCount} targets and ${classCount} classes`);
  }
  if (targetCount > 1 && classCounts.some((count) => count > 1)) {
    throw new InferenceError(
      "UNSUPPORTED",
      "the model classifies for several targets at once, which this backend does not run",
    );
  }
  if (targets.length !== treeCount || classes.length !== treeCount || baseScores.length !== outputCount) {
    throw invalidForest("the file", "has lists of targets, classes and base scores of different lengths");
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
  if (byteLength > byteLengthMax) throw invalidForest("the file", `has a name of ${byteLength} bytes`);
  return from.text(byteLength);
}

/** Skips fields of later versions, each with its name and size. */
function skipOptionalFields(from: ByteReader): void {
  const count = from.int32();
  if (count < 0) throw invalidForest("the file", `has ${count} optional fields, at ${from.at - 4}`);
  for (let index = 0; index < count; index += 1) {
    from.take(readCount(from, 1));
    const elementBytes = from.uint64();
    from.takeElements(from.uint64(), elementBytes);
  }
}

/**
 * Returns the output to which a tree adds; "every" if its leaves have a value for each output. The file marks this with -1 as the class
 * or, if the model has one class, as the target. Models with several classes and several targets are not supported.
 */
function roleOf(
  { target, outputClass, index }: { readonly target: number; readonly outputClass: number; readonly index: number },
  { targetCount, classCount }: Pick<Head, "targetCount" | "classCount">,
): number | "every" {
  const [position, count] = classCount > 1 ? [outputClass, classCount] : [target, targetCount];
  const other = classCount > 1 ? target : outputClass;
  if (other !== 0 && other !== -1)
    throw invalidForest(`tree ${index}`, `is of class ${outputClass} and target ${target}`);
  if (position === -1) return "every";
  if (position < 0 || position >= count) throw invalidForest(`tree ${index}`, `adds to output ${position} of ${count}`);
  return position;
}
