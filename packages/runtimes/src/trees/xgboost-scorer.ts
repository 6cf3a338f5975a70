import { discardMemory } from "@galatea/base/system";
import { compactForest } from "./evaluation/compact-forest.ts";
import { compileWalk, Evaluator } from "./evaluation/evaluator.ts";
import type { Forest } from "./forest.ts";
import { linearScore } from "./linear-scorer.ts";
import { readXgboost, type XgboostFileType } from "./read-forest.ts";

/** A model of XGBoost that one thread asks: what its library's own `predict` gives. */
export interface XgboostScorer {
  readonly featureCount: number;
  readonly outputCount: number;
  /** As XGBoost names it. */
  readonly objective: string;
  /** What the trees or weights take. */
  readonly memoryBytes: number;
  /** Rows of `featureCount` numbers, one behind the other, missing ones NaN; `outputCount` numbers for each. */
  readonly score: (rows: Float32Array) => Float32Array;
  /** Gives the memory of its trees back; it is asked no more. */
  readonly discard: () => void;
}

export interface ScorerOptions {
  /** Of each output only the first trees count; 0 for all. */
  readonly treesMax: number;
}

/** Reads a model file of trees, or of the linear booster. Throws InferenceError where it is none. */
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
  const whole: Forest = treesMax === 0 ? read : { ...read, trees: read.trees.slice(0, treesMax * read.outputCount) };
  const forest = compactForest(whole, { deskCount: 1 });
  const evaluator = new Evaluator(compileWalk(), { forest, answer: { kind: "scores" } }, 0);
  const { featureCount, outputCount, objective = "" } = whole;
  return {
    featureCount,
    outputCount,
    objective,
    memoryBytes: forest.memory.buffer.byteLength,
    discard: () => discardMemory(forest.memory.buffer),
    score: (rows) => {
      const rowCount = rows.length / featureCount;
      const answers = new Float32Array(rowCount * outputCount);
      const bits = new Int32Array(rows.buffer, rows.byteOffset, rows.length);
      evaluator.evaluate({ rows: bits, rowCount, answers, contributions: null });
      return answers;
    },
  };
}
