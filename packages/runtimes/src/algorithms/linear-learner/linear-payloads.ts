import { unreachable } from "@galatea/base";
import { csvRows } from "../payloads/csv-rows.ts";
import { type ExampleFeatures, featureTable } from "../payloads/feature-table.ts";
import { jsonExamples, jsonLinesExamples } from "../payloads/json-examples.ts";
import { isOpen, parseMediaType } from "../payloads/media-type.ts";
import { pythonFloat, pythonJsonFloat } from "../payloads/number-text.ts";
import {
  type FeatureRows,
  type AlgorithmRequest,
  type AlgorithmResponse,
  payloadText,
  AlgorithmRequestError,
  textResponse,
} from "../payloads/algorithm-request.ts";
import { recordIoExamples, recordIoLabels } from "../payloads/record-io.ts";
import type { LinearModel, LinearPrediction } from "./linear-model.ts";

const requestTypes = [
  "text/csv",
  "application/json",
  "application/jsonlines",
  "application/x-recordio-protobuf",
] as const;
type RequestType = (typeof requestTypes)[number];

/** Handles a request as linear learner's container does. Throws AlgorithmRequestError. */
export function predictLinear(model: LinearModel, payload: AlgorithmRequest): AlgorithmResponse {
  const { type } = parseMediaType(payload.contentType);
  const requestType = requestTypes.find((each) => each === type);
  if (requestType === undefined) {
    throw new AlgorithmRequestError(
      415,
      `Content-type ${payload.contentType} not supported. Supported content-type is ${requestTypes.join(", ")}`,
    );
  }
  const responseType = responseTypeOf(payload.accept);
  let predictions: LinearPrediction[];
  try {
    predictions = model.predict(rowsOf(requestType, payload.bytes, model.featureCount));
  } catch (error) {
    if (!(error instanceof RangeError || error instanceof SyntaxError || error instanceof TypeError)) throw error;
    throw new AlgorithmRequestError(400, `unable to evaluate payload provided: ${error.message}`);
  }
  return encoded(predictions, responseType);
}

function responseTypeOf(accept: string): RequestType {
  if (isOpen(accept)) return "application/json";
  const { type } = parseMediaType(accept);
  const responseType = requestTypes.find((each) => each === type);
  if (responseType !== undefined) return responseType;
  throw new AlgorithmRequestError(
    406,
    `Accept type ${accept} not supported. Supported accept types are ${requestTypes.join(", ")}`,
  );
}

function rowsOf(type: RequestType, bytes: Uint8Array, columnCount: number): FeatureRows {
  const tableOf = (examples: readonly ExampleFeatures[]) =>
    featureTable(examples, {
      absent: 0,
      columnCount: examples[0]?.kind === "sparse" ? columnCount : 0,
      columnsMax: columnCount + 1,
    });
  switch (type) {
    case "text/csv":
      return csvRows(payloadText(bytes), { delimiter: ",", emptyCell: null });
    case "application/json":
      return tableOf(jsonExamples(payloadText(bytes)));
    case "application/jsonlines":
      return tableOf(jsonLinesExamples(payloadText(bytes)));
    case "application/x-recordio-protobuf":
      return tableOf(recordIoExamples(bytes));
    default:
      return unreachable(type);
  }
}

function encoded(predictions: readonly LinearPrediction[], type: RequestType): AlgorithmResponse {
  switch (type) {
    case "application/json":
      return textResponse(type, `{"predictions": [${predictions.map(predictionJson).join(", ")}]}`);
    case "application/jsonlines":
      return textResponse(type, predictions.map((each) => `${predictionJson(each)}\n`).join(""));
    case "text/csv":
      return textResponse(
        type,
        predictions.map(({ scores }) => `${Array.from(scores, pythonFloat).join(",")}\n`).join(""),
      );
    case "application/x-recordio-protobuf":
      return {
        status: 200,
        contentType: type,
        bytes: recordIoLabels(
          predictions.map(({ scores, label }) => [
            ["score", [...scores]],
            ...(label === null ? [] : [["predicted_label", [label]] as const]),
          ]),
        ),
      };
    default:
      return unreachable(type);
  }
}

function predictionJson({ scores, label }: LinearPrediction): string {
  const texts = Array.from(scores, pythonJsonFloat);
  const score = texts.length === 1 ? texts[0] : `[${texts.join(", ")}]`;
  return label === null ? `{"score": ${score}}` : `{"score": ${score}, "predicted_label": ${label}}`;
}
