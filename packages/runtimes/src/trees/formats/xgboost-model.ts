import { InferenceError } from "@galatea/base";
import { invalidForest, type Forest, type Precision, type Transform } from "../forest.ts";

/**
 * A model of XGBoost's booster gblinear. Each output is the transform of its base score plus a bias and a weighted sum of the features that
 * are not missing.
 */
export interface LinearBooster {
  readonly precision: Precision;
  readonly featureCount: number;
  readonly outputCount: number;
  /** Weights, by feature and then by output, followed by the bias of each output. */
  readonly weights: Float32Array;
  readonly baseScores: readonly number[];
  readonly transform: Transform;
  readonly objective: string;
}

/** The model of an XGBoost file. */
export type XgboostModel =
  | { readonly kind: "trees"; readonly forest: Forest }
  | { readonly kind: "linear"; readonly linear: LinearBooster };

/** Returns a linear model. Throws InferenceError unless each output has one weight for each feature, and a bias. */
export function linearBooster(linear: LinearBooster, path: string): XgboostModel {
  const { featureCount, outputCount, weights } = linear;
  if (weights.length !== (featureCount + 1) * outputCount)
    throw invalidForest(path, `has ${weights.length} weights for ${featureCount} features and ${outputCount} outputs`);
  return { kind: "linear", linear };
}

/** Returns the trees of a model. Throws InferenceError for a linear model. */
export function treesOf(model: XgboostModel): Forest {
  if (model.kind === "trees") return model.forest;
  throw noTrees("gblinear");
}

export function noTrees(booster: string): InferenceError {
  return new InferenceError(
    "UNSUPPORTED",
    `XGBoost's booster '${booster}' has no trees: only gbtree and dart are run by this backend`,
  );
}
