import { InferenceError } from "@galatea/base";
import { invalidForest, type Forest, type Precision, type Transform } from "../forest.ts";

/**
 * A model of XGBoost's booster gblinear: each output is its base score plus a bias and a weighted sum of the present features,
 * transformed.
 */
export interface LinearBooster {
  readonly precision: Precision;
  readonly featureCount: number;
  readonly outputCount: number;
  /** By feature and then by output; after the last feature the biases. */
  readonly weights: Float32Array;
  readonly baseScores: readonly number[];
  readonly transform: Transform;
  readonly objective: string;
}

/** The model of an XGBoost file. */
export type XgboostModel =
  | { readonly kind: "trees"; readonly forest: Forest }
  | { readonly kind: "linear"; readonly linear: LinearBooster };

/** Throws InferenceError unless there is one weight for each feature, and a bias, of each output. */
export function linearBooster(linear: LinearBooster, path: string): XgboostModel {
  const { featureCount, outputCount, weights } = linear;
  if (weights.length !== (featureCount + 1) * outputCount)
    throw invalidForest(path, `has ${weights.length} weights for ${featureCount} features and ${outputCount} outputs`);
  return { kind: "linear", linear };
}

/** Throws InferenceError for a model without trees. */
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
