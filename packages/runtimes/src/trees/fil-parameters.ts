import { InferenceError } from "@galatea/base";
import type { ModelConfig } from "@galatea/server/modelconfig";

/** Default file names, by `model_type`. */
export const modelTypes = {
  xgboost: "xgboost.model",
  xgboost_json: "xgboost.json",
  xgboost_ubj: "xgboost.ubj",
  lightgbm: "model.txt",
  treelite_checkpoint: "checkpoint.tl",
} as const;

export type ModelType = keyof typeof modelTypes;

/** The configuration of a model for the `fil` backend. */
export interface FilParameters {
  readonly modelType: ModelType;
  readonly fileName: string;
  readonly isClassifier: boolean;
  readonly predictProba: boolean;
  readonly threshold: number;
  readonly allowUnknownField: boolean;
  /** Maximum number of threads of a batch; 0 for one per core. */
  readonly threadCount: number;
  /** Configured parameters without effect here. */
  readonly withoutEffect: readonly string[];
}

const thresholdDefault = 0.5;
/**
 * Parameters of GPU kernels. The last four were removed from Triton's backend, but existing configurations still
 * contain them.
 */
const gpuParameters = [
  "layout",
  "chunk_size",
  "transfer_threshold",
  "use_experimental_optimizations",
  "algo",
  "threads_per_tree",
  "storage_type",
  "blocks_per_sm",
];

/** Reads the parameters. Throws InferenceError with the messages of Triton's backend. `threshold` is optional, as Triton documents. */
export function readFilParameters(config: ModelConfig): FilParameters {
  const modelType = config.parameters.get("model_type") ?? "xgboost";
  if (!isModelType(modelType)) {
    throw new InferenceError("UNSUPPORTED", `${modelType} not recognized as a valid serialization format.`);
  }
  return {
    modelType,
    fileName: config.defaultModelFilename === "" ? modelTypes[modelType] : config.defaultModelFilename,
    isClassifier: readIsClassifier(config),
    predictProba: readSwitch(config, "predict_proba") ?? false,
    threshold: readNumber(config, "threshold") ?? thresholdDefault,
    allowUnknownField: readSwitch(config, "xgboost_allow_unknown_field") ?? false,
    threadCount: readThreadCount(config),
    withoutEffect: gpuParameters.filter((key) => config.parameters.has(key)),
  };
}

function isModelType(text: string): text is ModelType {
  return Object.hasOwn(modelTypes, text);
}

/** Reads `is_classifier`, whose former name is `output_class`. */
function readIsClassifier(config: ModelConfig): boolean {
  const isClassifier = readSwitch(config, "output_class") ?? readSwitch(config, "is_classifier");
  if (isClassifier === null) throw invalid("Required parameter is_classifier not found in config");
  return isClassifier;
}

function readSwitch(config: ModelConfig, key: string): boolean | null {
  const text = config.parameters.get(key);
  if (text === undefined) return null;
  if (text !== "true" && text !== "false") {
    throw invalid(`Expected 'true' or 'false' for parameter '${key}', got: '${text}'`);
  }
  return text === "true";
}

const threadCountMax = 1024;

/** Reads `cpu_nthread`, in which -1 and 0 mean all cores. */
function readThreadCount(config: ModelConfig): number {
  const count = readNumber(config, "cpu_nthread") ?? -1;
  if (!Number.isInteger(count) || count > threadCountMax) throw invalid("Bad input for parameter cpu_nthread");
  return Math.max(0, count);
}

function readNumber(config: ModelConfig, key: string): number | null {
  const text = config.parameters.get(key);
  if (text === undefined) return null;
  if (!/^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$/.test(text)) throw invalid(`Bad input for parameter ${key}`);
  return Number(text);
}

function invalid(message: string): InferenceError {
  return new InferenceError("INVALID_ARG", message);
}
