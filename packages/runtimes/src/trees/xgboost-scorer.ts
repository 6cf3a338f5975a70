import { discardMemory } from "@galatea/base/system";
import { compactForest } from "./evaluation/compact-forest.ts";
import { compileTraversal, Evaluator } from "./evaluation/evaluator.ts";
import type { Forest } from "./forest.ts";
import { linearScore } from "./linear-scorer.ts";
import { readXgboost, type XgboostFileType } from "./read-forest.ts";

/** An XGBoost model that is evaluated in the calling thread; its results equal those of the library's `predict`. */
export interface XgboostScorer {
  readonly featureCount: number;
  readonly outputCount: number;
  /** XGBoost's name of the objective. */
  readonly objective: string;
  /** Memory of the trees or weights, in bytes. */
  readonly memoryBytes: number;
  /** Scores rows of `featureCount` numbers, in which NaN is a missing value. Returns `outputCount` numbers per row. */
  readonly score: (rows: Float32Array) => Float32Array;
  /** Frees the memory of the trees. `score` must not be called afterwards. */
  readonly discard: () => void;
}

export interface ScorerOptions {
  /** Maximum number of trees for each output; 0 for all. */
  readonly treesMax: number;
}

/** Reads a model file of XGBoost, of trees or of the linear booster. Throws InferenceError for an invalid file. */
export function readXgboostScorer(
  bytes: Uint8Array,
  type: XgboostFileType,
  { treesMax }: ScorerOptions,
): XgboostScorer {
  const read = readXgboost(bytes, type, { allowUnknownField: true });
  if (read.kind === "trees") return treeScorer(read.forest, treesMax);
  const { featureCount, outputCount, objective, weights } = read.linear;
  const score = linearScore(read.linear);
  return { featureCount, outputCount, objective, memoryBytes: weights.byteLength, score, discard: () => {} };
}

function treeScorer(read: Forest, treesMax: number): XgboostScorer {
  const complete: Forest = treesMax === 0 ? read : { ...read, trees: read.trees.slice(0, treesMax * read.outputCount) };
  const forest = compactForest(complete, { workspaceCount: 1 });
  const evaluator = new Evaluator(compileTraversal(), { forest, outputForm: { kind: "scores" } }, 0);
  const { featureCount, outputCount, objective = "" } = complete;
  return {
    featureCount,
    outputCount,
    objective,
    memoryBytes: forest.memory.buffer.byteLength,
    discard: () => discardMemory(forest.memory.buffer),
    score: (rows) => {
      const rowCount = rows.length / featureCount;
      const predictions = new Float32Array(rowCount * outputCount);
      const bits = new Int32Array(rows.buffer, rows.byteOffset, rows.length);
      evaluator.evaluate({ rows: bits, rowCount, predictions, contributions: null });
      return predictions;
    },
  };
}
