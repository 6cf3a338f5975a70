import type { ModelConfig } from "../modelconfig/index.ts";
import type { ModelMetadata, TensorMetadata } from "./engine.ts";
import type { ModelFacts } from "./model-facts.ts";

/** In the original's order; the shared-memory entries appear there even when the feature is off. */
export const serverExtensions: readonly string[] = [
  "classification",
  "sequence",
  "model_repository",
  "model_repository(unload_dependents)",
  "schedule_policy",
  "model_configuration",
  "system_shared_memory",
  "cuda_shared_memory",
  "binary_tensor_data",
  "parameters",
  "statistics",
  "trace",
  "logging",
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
