import { type AlgorithmResponse, AlgorithmRequestError, textResponse } from "../payloads/algorithm-request.ts";
import { isOpen } from "../payloads/media-type.ts";
import { pythonFloat, pythonJsonFloat } from "../payloads/number-text.ts";
import type { RowPrediction } from "./tree-predictor.ts";

/**
 * Returns the response of the multi-model XGBoost container, which uses another server than the single-model one, and has its own
 * formats: a JSON list unless CSV is accepted, and that in one line. Throws AlgorithmRequestError for other types.
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
