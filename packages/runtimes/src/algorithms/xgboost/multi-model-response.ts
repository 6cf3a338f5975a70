import { type AlgorithmResponse, AlgorithmRequestError, textResponse } from "../payloads/algorithm-request.ts";
import { isOpen } from "../payloads/media-type.ts";
import { pythonFloat, pythonJsonFloat } from "../payloads/number-text.ts";
import type { RowPrediction } from "./tree-predictor.ts";

/**
 * Returns the response of the XGBoost container in multi-model mode, whose server has other formats than in single-model mode: a JSON list,
 * or one line of CSV if the client accepts CSV (one line per row in a transform job). Throws AlgorithmRequestError for other types.
 */
export function multiModelResponse(
  predictions: readonly RowPrediction[],
  accept: string,
  isBatch: boolean,
): AlgorithmResponse {
  const type = isOpen(accept) ? "application/json" : accept;
  switch (type.toLowerCase()) {
    case "application/json":
      return textResponse(type, `[${predictions.map((each) => listed(each, pythonJsonFloat)).join(", ")}]`);
    case "text/csv":
    case "csv": {
      const texts = predictions.map((each) => listed(each, pythonFloat));
      return textResponse(type, isBatch ? texts.map((text) => `${text}\n`).join("") : texts.join(","));
    }
    default:
      throw new AlgorithmRequestError(
        415,
        `Encoding to accept type ${type} failed with exception: ${type} is not an accepted Accept type. ` +
          "Please choose one of the following: ['text/csv', 'application/json'].",
      );
  }
}

function listed(prediction: RowPrediction, print: (value: number) => string): string {
  return typeof prediction === "number" ? print(prediction) : `[${prediction.map(print).join(", ")}]`;
}
