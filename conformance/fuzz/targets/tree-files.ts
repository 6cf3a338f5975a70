import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import * as fc from "fast-check";
import { InferenceError } from "@galatea/base";
import { compactForest } from "../../../packages/runtimes/src/trees/evaluation/compact-forest.ts";
import { compileTraversal, Evaluator } from "../../../packages/runtimes/src/trees/evaluation/evaluator.ts";
import type { ModelType } from "../../../packages/runtimes/src/trees/fil-parameters.ts";
import { readForest } from "../../../packages/runtimes/src/trees/read-forest.ts";
import { discardMemory } from "@galatea/base/system";
import { mutated } from "../mutations.ts";
import type { FuzzTarget } from "../target.ts";

interface TreeFile {
  readonly type: ModelType;
  readonly bytes: Buffer;
}

const counts = [0, 1, 2, 0x7fff_ffff, -1, 0x8000_0000].map((count) => {
  const bytes = Buffer.alloc(8);
  bytes.writeBigInt64LE(BigInt(count));
  return bytes;
});
const texts = [
  "[",
  "]",
  "{",
  "}",
  ",",
  ":",
  '"',
  "0",
  "-1",
  "1e999",
  "NaN",
  "-Infinity",
  "2147483648",
  "null",
  "\\ud800",
];
const documentWords = [
  "trees",
  "tree_param",
  "split_conditions",
  "left_children",
  "categories_nodes",
  "base_score",
  "[1E0,2E0]",
];

/** Files that the real libraries wrote (trees/write.py, ../trees/treelite3/write.py), and words of each form. */
const corpus: Readonly<
  Record<ModelType, { readonly files: readonly string[]; readonly words: readonly (string | Buffer)[] }>
> = {
  xgboost: { files: ["dart.model"], words: counts },
  xgboost_json: {
    files: ["categories.json", "vectors.json"],
    words: [...texts, ...documentWords.map((word) => `"${word}":`)],
  },
  xgboost_ubj: {
    files: ["categories.ubj", "vectors.ubj"],
    words: [
      ..."[ ] { } $ # i U I l L d D S Z T F N".split(" "),
      ...documentWords,
      "$d#L\0\0\0\0\u007f\u007f\u007f\u007f",
      ...counts,
    ],
  },
  lightgbm: {
    files: ["categories.txt", "linear.txt"],
    words: ["\n", " ", "=", "Tree=9\n", "num_leaves=9", "num_cat=1", "nan", "inf", "-1", "1e999", "4294967296", "\r\n"],
  },
  treelite_checkpoint: { files: ["categories.tl", "classes.tl", "categories-3.tl", "forest-3.tl"], words: counts },
};

const inputs = fc.oneof(
  ...Object.entries(corpus).map(([type, { files, words }]) =>
    mutated(
      fc.constantFrom(...files.map((file) => readFileSync(new URL(`../trees/${file}`, import.meta.url)))),
      words,
    ).map((bytes): TreeFile => ({ type: type as ModelType, bytes })),
  ),
);

/** Model files of trees that are read, prepared and evaluated. */
export const treeFiles: FuzzTarget<TreeFile> = {
  name: "tree-files",
  about: "model files of XGBoost, LightGBM and treelite",
  share: 0.048,
  inputs,
  open: () => Promise.resolve({ attempt, [Symbol.asyncDispose]: () => Promise.resolve() }),
};

const walk = compileTraversal();
const rowCount = 9;
/** Limits of the columns, sums and weights of a small file; a file that declares more than it has would exceed them many times. */
const memoryBytesMax = 2 ** 21;
const featuresTried = 1000;

function attempt({ type, bytes }: TreeFile): boolean {
  try {
    const forest = compactForest(readForest(bytes, type, { allowUnknownField: false }), { workspaceCount: 1 });
    const { memory, featureCount, outputCount } = forest;
    assert.ok(memory.buffer.byteLength <= memoryBytesMax + outputCount * 64, `${memory.buffer.byteLength} bytes`);
    if (featureCount <= featuresTried) {
      const predictions = new Float32Array(rowCount * outputCount);
      const rows = new Int32Array(rowCount * featureCount).map((_, index) => Math.imul(index, 0x9e3779b1));
      new Evaluator(walk, { forest, outputForm: { kind: "scores" } }, 0).evaluate({
        rows,
        rowCount,
        predictions,
        contributions: null,
      });
    }
    discardMemory(memory.buffer);
    return true;
  } catch (error) {
    if (!(error instanceof InferenceError)) throw error;
    assert.ok(["INVALID_ARG", "UNSUPPORTED"].includes(error.code), `${error.code}: ${error.message}`);
    assert.ok(error.message.length > 10 && error.message.length < 500, error.message);
    return false;
  }
}
