import { readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import {
  type AlgorithmResponse,
  AlgorithmRequestError,
  type AlgorithmRequest,
  predictLinear,
  predictSpark,
  predictXgboost,
  readLinearModel,
  readSparkModel,
  rejectionResponse,
} from "../algorithms/index.ts";
import { InferenceError, unreachable } from "@galatea/base";
import { readXgboostServing } from "./xgboost-models.ts";

/** Algorithms, by the name of their backend. */
export type AlgorithmName = "linear_learner" | "sparkml" | "xgboost";

/** The files and settings of a model. */
export interface AlgorithmSource {
  readonly algorithm: AlgorithmName;
  readonly directory: string;
  /** Environment variables of the container that the algorithm uses. */
  readonly settings: Readonly<Record<string, string>>;
}

export interface AlgorithmModel {
  /** Estimated memory of the model, in bytes. */
  readonly memoryBytes: number;
  /** Returns the response, which is an error response for an invalid request. Does not throw. */
  readonly invoke: (request: AlgorithmRequest) => AlgorithmResponse;
  /** Frees memory that the garbage collector would free late; the model must not be called afterwards. */
  readonly discard: () => void;
}

/** Maximum size of the model file of linear learner. */
const artifactBytesMax = 512 * 2 ** 20;

/** Reads a model. Throws InferenceError for invalid files. Blocks for a time linear in the size of the files, so it runs in worker threads. */
export function readAlgorithmModel({ algorithm, directory, settings }: AlgorithmSource): AlgorithmModel {
  switch (algorithm) {
    case "linear_learner": {
      const model = readLinearModel(readArtifact(directory));
      return {
        memoryBytes: model.memoryBytes,
        invoke: withRejections((request) => predictLinear(model, request)),
        discard: nothingElse,
      };
    }
    case "sparkml": {
      const schemaText = settings.SAGEMAKER_SPARKML_SCHEMA ?? "";
      const serving = { model: readSparkModel(directory), schemaText };
      return {
        memoryBytes: 0,
        invoke: withRejections((request) => predictSpark(serving, request)),
        discard: nothingElse,
      };
    }
    case "xgboost": {
      const { serving, memoryBytes, discard } = readXgboostServing(directory, settings);
      return { memoryBytes, invoke: withRejections((request) => predictXgboost(serving, request)), discard };
    }
    default:
      return unreachable(algorithm);
  }
}

const nothingElse = (): void => {};

function withRejections(invoke: (request: AlgorithmRequest) => AlgorithmResponse): AlgorithmModel["invoke"] {
  return (request) => {
    try {
      return invoke(request);
    } catch (error) {
      if (error instanceof AlgorithmRequestError) return rejectionResponse(error);
      throw error;
    }
  };
}

function readArtifact(directory: string): Uint8Array {
  const path = join(directory, "model_algo-1");
  try {
    const { size } = statSync(path);
    if (size > artifactBytesMax)
      throw new InferenceError("UNSUPPORTED", `'model_algo-1' is larger than ${artifactBytesMax} bytes`);
    return readFileSync(path);
  } catch (error) {
    if (error instanceof InferenceError) throw error;
    throw new InferenceError(
      "INVALID_ARG",
      "the archive has no file 'model_algo-1', which an archive of a linear learner must have",
      {
        cause: error,
      },
    );
  }
}
