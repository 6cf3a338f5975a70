import { unreachable } from "@galatea/base";
import { isOpen, parseMediaType } from "../payloads/media-type.ts";
import { pythonFloat, pythonJsonFloat } from "../payloads/number-text.ts";
import {
  type AlgorithmResponse,
  AlgorithmRequestError,
  type AlgorithmRequest,
  type FeatureRows,
  textResponse,
} from "../payloads/algorithm-request.ts";
import { recordIoLabels } from "../payloads/record-io.ts";
import { multiModelResponse } from "./multi-model-response.ts";
import { selectedCsv, selectedJson, type SelectedRow, selectedRows } from "./selected-output.ts";
import { predictRows, type RowPrediction, type TreePredictor } from "./tree-predictor.ts";
import { readXgboostRows, type XgboostRows } from "./xgboost-rows.ts";

const acceptTypes = [
  "application/json",
  "application/jsonlines",
  "application/x-recordio-protobuf",
  "text/csv",
] as const;
type AcceptType = (typeof acceptTypes)[number];

/** The models and settings of a container of the XGBoost algorithm. */
export interface XgboostServing {
  /** One model, or all models of an ensemble; never empty. */
  readonly models: readonly TreePredictor[];
  /** True if the first model is a pickle: SageMaker's container then checks the number of features differently. */
  readonly isPickled: boolean;
  /** The values listed in SAGEMAKER_INFERENCE_OUTPUT; null if it is not set. */
  readonly selection: readonly string[] | null;
  /** True in a transform job. */
  readonly isBatch: boolean;
  /** True in a multi-model container. */
  readonly isOneOfMany: boolean;
}

/** Handles a request as SageMaker's XGBoost container does in algorithm mode. Throws AlgorithmRequestError. */
export function predictXgboost(serving: XgboostServing, request: AlgorithmRequest): AlgorithmResponse {
  if (request.bytes.length === 0) return { ...textResponse("text/html; charset=utf-8", ""), status: 204 };
  const read = readXgboostRows(request, (serving.models[0] as TreePredictor).featureCount);
  let predictions: RowPrediction[];
  try {
    predictions = predictRows(serving.models, fittedRows(serving, read));
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    throw new AlgorithmRequestError(400, `Unable to evaluate payload provided: ${error.message}`);
  }
  if (serving.isOneOfMany) return multiModelResponse(predictions, request.accept, serving.isBatch);
  const accept = acceptOf(request.accept);
  return serving.selection === null
    ? encodedScores(predictions, accept, serving)
    : selectedResponse(predictions, accept, { ...serving, selection: serving.selection });
}

/** Returns the rows with exactly as many columns as the model has features; added columns are missing values. */
function fittedRows({ models, isPickled }: XgboostServing, { type, rows }: XgboostRows): FeatureRows {
  const { featureCount } = models[0] as TreePredictor;
  const { columnCount } = rows;
  if (isPickled && type === "libsvm" && columnCount > featureCount + 1) {
    throw new RangeError(
      `Feature size of libsvm inference data ${columnCount} is larger than feature size of trained model ${featureCount}.`,
    );
  }
  if (isPickled && type !== "libsvm" && columnCount !== featureCount && columnCount !== featureCount - 1) {
    throw new RangeError(
      `Feature size of ${type} inference data ${columnCount} is not consistent with feature size of trained model ${featureCount}.`,
    );
  }
  if (columnCount > featureCount) {
    throw new RangeError(
      `Number of columns does not match number of features in booster. (${featureCount} vs. ${columnCount})`,
    );
  }
  return columnCount === featureCount ? rows : widened(rows, featureCount);
}

function widened({ rowCount, columnCount, values }: FeatureRows, width: number): FeatureRows {
  const wide = new Float32Array(rowCount * width).fill(NaN);
  for (let row = 0; row < rowCount; row += 1) {
    wide.set(values.subarray(row * columnCount, (row + 1) * columnCount), row * width);
  }
  return { rowCount, columnCount: width, values: wide };
}

function acceptOf(accept: string): AcceptType {
  if (isOpen(accept)) return "text/csv";
  const { type } = parseMediaType(accept);
  const found = acceptTypes.find((each) => each === type);
  if (found !== undefined) return found;
  const known = acceptTypes.map((each) => `'${each}'`).join(", ");
  throw new AlgorithmRequestError(
    406,
    `Accept type ${type} is not supported. Please use supported accept types: [${known}].`,
  );
}

/** Encodes predictions in the accepted type. In a transform job each prediction is one line in Python's format, for any type. */
function encodedScores(
  predictions: readonly RowPrediction[],
  type: AcceptType,
  { isBatch }: XgboostServing,
): AlgorithmResponse {
  if (isBatch)
    return textResponse(type, predictions.map((each) => `${printed(each, pythonFloat, ", ", true)}\n`).join(""));
  const score = (each: RowPrediction) => `{"score": ${printed(each, pythonJsonFloat, ", ", true)}}`;
  switch (type) {
    case "application/json":
      return textResponse(type, `{"predictions": [${predictions.map(score).join(", ")}]}`);
    case "application/jsonlines":
      return textResponse(type, predictions.map((each) => `${score(each)}\n`).join(""));
    case "text/csv":
      return textResponse(type, predictions.map((each) => `${printed(each, pythonFloat, ",", false)}\n`).join(""));
    case "application/x-recordio-protobuf":
      return records(predictions.map((each) => [["score", typeof each === "number" ? [each] : each]]));
    default:
      return unreachable(type);
  }
}

function printed(
  prediction: RowPrediction,
  print: (value: number) => string,
  between: string,
  inBrackets: boolean,
): string {
  if (typeof prediction === "number") return print(prediction);
  const joined = prediction.map(print).join(between);
  return inBrackets ? `[${joined}]` : joined;
}

function selectedResponse(
  predictions: readonly RowPrediction[],
  type: AcceptType,
  { models, selection, isBatch }: XgboostServing & { readonly selection: readonly string[] },
): AlgorithmResponse {
  const { objective, outputCount } = models[0] as TreePredictor;
  let rows: readonly SelectedRow[];
  try {
    rows = selectedRows(predictions, { selection, objective, classCount: outputCount });
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    throw new AlgorithmRequestError(500, error.message);
  }
  switch (type) {
    case "application/json":
      return textResponse(type, `{"predictions": [${rows.map(selectedJson).join(", ")}]}`);
    case "application/jsonlines":
      return textResponse(type, rows.map((row) => `${selectedJson(row)}\n`).join(""));
    case "text/csv":
      return textResponse(type, rows.map((row) => selectedCsv(row, selection)).join("\n") + (isBatch ? "\n" : ""));
    case "application/x-recordio-protobuf":
      return records(rows.map((row) => [...row].map(([key, { numbers }]) => [key, numbers] as const)));
    default:
      return unreachable(type);
  }
}

function records(examples: Parameters<typeof recordIoLabels>[0]): AlgorithmResponse {
  return { status: 200, contentType: "application/x-recordio-protobuf", bytes: recordIoLabels(examples) };
}
