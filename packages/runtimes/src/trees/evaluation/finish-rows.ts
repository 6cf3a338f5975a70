import { unreachable } from "@galatea/base";
import type { Precision, Transform } from "../forest.ts";
import type { OutputForm } from "./output-form.ts";
import { expFloat } from "./c-library.ts";

/** Writes the result of a row to `predictions` at `offset`, and overwrites its sums. Comparisons are in float32, as in the libraries. */
export type FinishRow = (scores: Float64Array, predictions: Float32Array, offset: number) => void;

export function finishRow(transform: Transform, outputForm: OutputForm, precision: Precision): FinishRow {
  const transformScores = (precision === "float32" ? floatTransformOf(transform) : null) ?? transformOf(transform);
  const write = writerOf(outputForm);
  return (scores, to, at) => {
    transformScores(scores);
    write(scores, to, at);
  };
}

const each = (change: (score: number) => number) => (scores: Float64Array) => {
  for (let output = 0; output < scores.length; output += 1) scores[output] = change(scores[output] as number);
};

/** XGBoost's limit of the argument, so that e^x does not overflow a float32. */
const sigmoidMax = Math.fround(88.7);

/**
 * Returns XGBoost's float32 implementation of a transform. Returns null if both precisions give the same result, or XGBoost does not have
 * the transform.
 */
function floatTransformOf(transform: Transform): ((scores: Float64Array) => void) | null {
  switch (transform.kind) {
    case "sigmoid":
      return each((score) => Math.fround(1 / Math.fround(expFloat(Math.min(-score, sigmoidMax)) + 1)));
    case "exponential":
      return transform.precision === "float64" ? null : each(expFloat);
    case "softmax":
      return floatSoftmax;
    default:
      return null;
  }
}

/** Computes softmax like XGBoost: the divisor is summed in float64 and then rounded to float32. */
function floatSoftmax(scores: Float64Array): void {
  let highest = -Infinity;
  for (let output = 0; output < scores.length; output += 1) highest = Math.max(highest, scores[output] as number);
  let sum = 0;
  for (let output = 0; output < scores.length; output += 1) {
    const share = expFloat(Math.fround((scores[output] as number) - highest));
    scores[output] = share;
    sum += share;
  }
  const total = Math.fround(sum);
  for (let output = 0; output < scores.length; output += 1)
    scores[output] = Math.fround((scores[output] as number) / total);
}

function transformOf(transform: Transform): (scores: Float64Array) => void {
  switch (transform.kind) {
    case "identity":
      return () => {};
    case "sigmoid": {
      const { alpha } = transform;
      return each((score) => 1 / (1 + Math.exp(-alpha * score)));
    }
    case "softmax":
      return softmax;
    case "exponential":
      return each(Math.exp);
    case "softplus":
      return each((score) => Math.max(score, 0) + Math.log1p(Math.exp(-Math.abs(score))));
    case "hinge":
      return each((score) => (Math.fround(score) > 0 ? 1 : 0));
    case "signed-square":
      return each((score) => score * Math.abs(score));
    case "exponential-ratio": {
      const exponent = -Math.LN2 / transform.ratio;
      return each((score) => Math.exp(exponent * score));
    }
    default:
      return unreachable(transform);
  }
}

function softmax(scores: Float64Array): void {
  let highest = -Infinity;
  for (const score of scores) highest = Math.max(highest, score);
  let sum = 0;
  for (const [output, score] of scores.entries()) {
    const share = Math.exp(score - highest);
    scores[output] = share;
    sum += share;
  }
  for (const [output, share] of scores.entries()) scores[output] = share / sum;
}

function writerOf(outputForm: OutputForm): FinishRow {
  switch (outputForm.kind) {
    case "scores":
      return (scores, to, at) => {
        for (let output = 0; output < scores.length; output += 1) to[at + output] = scores[output] as number;
      };
    case "both-classes":
      return ([score = 0], to, at) => {
        to[at] = 1 - Math.fround(score);
        to[at + 1] = score;
      };
    case "above": {
      const threshold = Math.fround(outputForm.threshold);
      return ([score = 0], to, at) => {
        to[at] = Math.fround(score) > threshold ? 1 : 0;
      };
    }
    case "best-class":
      return (scores, to, at) => {
        let best = 0;
        for (const [output, score] of scores.entries()) {
          if (Math.fround(score) > Math.fround(scores[best] as number)) best = output;
        }
        to[at] = best;
      };
    default:
      return unreachable(outputForm);
  }
}
