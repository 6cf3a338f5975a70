import { finishRow } from "./evaluation/finish-rows.ts";
import type { LinearBooster } from "./formats/xgboost-model.ts";

/** Returns a function that evaluates a linear booster. Sums are float32, as in XGBoost. Missing features add nothing. */
export function linearScore({ featureCount, outputCount, weights, baseScores, transform, precision }: LinearBooster) {
  const finish = finishRow(transform, { kind: "scores" }, precision);
  const biasesAt = featureCount * outputCount;
  // XGBoost adds the first base score to each output, even if the model has one for each output.
  const baseScore = baseScores[0] as number;
  return (rows: Float32Array): Float32Array => {
    const rowCount = rows.length / featureCount;
    const predictions = new Float32Array(rowCount * outputCount);
    const sums = new Float64Array(outputCount);
    for (let row = 0; row < rowCount; row += 1) {
      for (let output = 0; output < outputCount; output += 1) {
        let sum = Math.fround((weights[biasesAt + output] as number) + baseScore);
        for (let feature = 0; feature < featureCount; feature += 1) {
          const value = rows[row * featureCount + feature] as number;
          if (Number.isNaN(value)) continue;
          sum = Math.fround(sum + Math.fround(value * (weights[feature * outputCount + output] as number)));
        }
        sums[output] = sum;
      }
      finish(sums, predictions, row * outputCount);
    }
    return predictions;
  };
}
