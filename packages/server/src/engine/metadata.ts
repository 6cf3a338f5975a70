import type { ModelConfig } from "../modelconfig/index.ts";
import type { ModelMetadata, TensorMetadata } from "./engine.ts";
import type { ModelFacts } from "./model-facts.ts";

/** Triton's names in its order, without those of extensions that are not built. */
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

/** What GET /v2/models/m says; `versions` are those ready (or the one asked for). */
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
