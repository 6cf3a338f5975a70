import type { FeatureRows } from "../payloads/algorithm-request.ts";

/** An XGBoost model that returns the results of `Booster.predict`. */
export interface TreePredictor {
  readonly featureCount: number;
  /** Number of results per row: 1, or one for each class or target. */
  readonly outputCount: number;
  /** XGBoost's name of the objective, such as `binary:logistic`. */
  readonly objective: string;
  /** Predicts rows of exactly `featureCount` columns; a missing feature is NaN. */
  readonly predict: (rows: FeatureRows) => Float32Array;
}

/** The prediction for a row: one number, or one for each class or target. */
export type RowPrediction = number | readonly number[];

/** Returns the predictions of an ensemble of one or more models: the mean, or the most frequent label if the models return labels. */
export function predictRows(models: readonly TreePredictor[], rows: FeatureRows): RowPrediction[] {
  const [first] = models as readonly [TreePredictor, ...TreePredictor[]];
  const isVote = first.objective === "multi:softmax" || first.objective === "binary:hinge";
  const each = models.map((model) => labelled(model, model.predict(rows)));
  const width = (each[0] as Float32Array).length / rows.rowCount;
  const together = (each[0] as Float32Array).map((_, at) => {
    const values = each.map((predictions) => predictions[at] as number);
    return isVote ? mostFrequent(values) : values.reduce((sum, value) => sum + value, 0) / values.length;
  });
  return Array.from({ length: rows.rowCount }, (_, row) =>
    width === 1 ? (together[row] as number) : [...together.subarray(row * width, (row + 1) * width)],
  );
}

/** Replaces the scores of each row by the class with the highest score, for `multi:softmax`; other objectives are unchanged. */
function labelled({ objective, outputCount }: TreePredictor, predictions: Float32Array): Float32Array {
  if (objective !== "multi:softmax") return predictions;
  return Float32Array.from({ length: predictions.length / outputCount }, (_, row) => {
    const scores = predictions.subarray(row * outputCount, (row + 1) * outputCount);
    return scores.indexOf(scores.reduce((most, score) => Math.max(most, score), -Infinity));
  });
}

/** Returns the smallest of the most frequent values. */
function mostFrequent(values: readonly number[]): number {
  const counts = new Map<number, number>();
  for (const value of values.toSorted((left, right) => left - right)) counts.set(value, (counts.get(value) ?? 0) + 1);
  let best = NaN;
  let most = 0;
  for (const [value, count] of counts) {
    if (count <= most) continue;
    most = count;
    best = value;
  }
  return best;
}
