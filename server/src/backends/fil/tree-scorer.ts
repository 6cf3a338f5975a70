import { compactForest } from "./evaluation/compact-forest.ts";
import { compileWalk, Evaluator } from "./evaluation/evaluator.ts";
import type { ModelType } from "./fil-parameters.ts";
import type { Forest } from "./forest.ts";
import { readForest } from "./read-forest.ts";

/** Trees that one thread asks: what their library's own `predict` gives. */
export interface TreeScorer {
  readonly featureCount: number;
  readonly outputCount: number;
  /** As XGBoost names it; "" for other libraries. */
  readonly objective: string;
  /** What the trees take. */
  readonly memoryBytes: number;
  /** Rows of `featureCount` numbers, one behind the other, missing ones NaN; `outputCount` numbers for each. */
  readonly score: (rows: Float32Array) => Float32Array;
}

export interface ScorerOptions {
  /** Of each output only the first trees count; 0 for all. */
  readonly treesMax: number;
}

/** Reads a model file. Throws InferenceError where it is none. */
export function readTreeScorer(bytes: Uint8Array, modelType: ModelType, { treesMax }: ScorerOptions): TreeScorer {
  const read = readForest(bytes, modelType, { allowUnknownField: true });
  const whole: Forest = treesMax === 0 ? read : { ...read, trees: read.trees.slice(0, treesMax * read.outputCount) };
  const forest = compactForest(whole, { deskCount: 1 });
  const evaluator = new Evaluator(compileWalk(), { forest, answer: { kind: "scores" } }, 0);
  const { featureCount, outputCount, objective = "" } = whole;
  return {
    featureCount,
    outputCount,
    objective,
    memoryBytes: forest.memory.buffer.byteLength,
    score: (rows) => {
      const rowCount = rows.length / featureCount;
      const answers = new Float32Array(rowCount * outputCount);
      const bits = new Int32Array(rows.buffer, rows.byteOffset, rows.length);
      evaluator.evaluate({ rows: bits, rowCount, answers, contributions: null });
      return answers;
    },
  };
}
