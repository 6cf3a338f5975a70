import { unreachable } from "@galatea/base";
import type { ModelType } from "./fil-parameters.ts";
import type { Forest } from "./forest.ts";
import { readJsonDocument } from "./formats/json-document.ts";
import { readLightgbmText } from "./formats/lightgbm-text.ts";
import { readTreeliteCheckpoint } from "./formats/treelite-checkpoint.ts";
import { readUbjDocument } from "./formats/ubj-document.ts";
import { readXgboostBinary } from "./formats/xgboost-binary.ts";
import { readXgboostDocument, type XgboostOptions } from "./formats/xgboost-document.ts";
import { treesOf, type XgboostModel } from "./formats/xgboost-model.ts";

export type XgboostFileType = "xgboost" | "xgboost_json" | "xgboost_ubj";

/**
 * Reads a model file. Throws InferenceError if the file is invalid, or the model is not supported. The length of the file bounds time and
 * memory, even for malicious content.
 */
export function readForest(bytes: Uint8Array, modelType: ModelType, options: XgboostOptions): Forest {
  switch (modelType) {
    case "xgboost":
    case "xgboost_json":
    case "xgboost_ubj":
      return treesOf(readXgboost(bytes, modelType, options));
    case "lightgbm":
      return readLightgbmText(bytes, options);
    case "treelite_checkpoint":
      return readTreeliteCheckpoint(bytes, options);
    default:
      return unreachable(modelType);
  }
}

/** Reads a model file of XGBoost like `readForest`; also supports the linear booster. */
export function readXgboost(bytes: Uint8Array, type: XgboostFileType, options: XgboostOptions): XgboostModel {
  switch (type) {
    case "xgboost":
      return readXgboostBinary(bytes, options);
    case "xgboost_json":
      return readXgboostDocument((taking) => readJsonDocument(bytes, taking), options);
    case "xgboost_ubj":
      return readXgboostDocument((taking) => readUbjDocument(bytes, taking), options);
    default:
      return unreachable(type);
  }
}
