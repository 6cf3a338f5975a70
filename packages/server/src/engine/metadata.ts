import type { ModelConfig } from "../modelconfig/index.ts";
import type { ModelMetadata, TensorMetadata } from "./engine.ts";
import type { ModelFacts } from "./model-facts.ts";

/** The protocol extensions that this server implements, with Triton's names and in its order. */
export const serverExtensions: readonly string[] = [
  "classification",
  "model_repository",
  "model_repository(unload_dependents)",
  "schedule_policy",
  "model_configuration",
  "binary_tensor_data",
  "parameters",
  "statistics",
];

/** Returns the body of GET /v2/models/m. `versions` are all ready versions, or only the requested one. */
export function modelMetadata(config: ModelConfig, facts: ModelFacts, versions: readonly string[]): ModelMetadata {
  const row = (tensor: { name: string; datatype: TensorMetadata["datatype"]; shape: readonly number[] }) => ({
    name: tensor.name,
    datatype: tensor.datatype,
    shape: tensor.shape,
  });
  return {
    name: config.name,
    versions,
    platform: config.platform === "" ? config.backend : config.platform,
    inputs: facts.inputs.map(row),
    outputs: [...facts.outputByName.values()].map(row),
  };
}
