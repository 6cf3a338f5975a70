import { clone, create } from "@bufbuild/protobuf";
import { toModelConfig } from "./from-message.ts";
import { ModelConfigSchema, ModelTransactionPolicySchema } from "./message.ts";
import type { EnsembleStepConfig, ModelConfig } from "./model-config.ts";
import { throwInvalidConfig } from "./invalid-config.ts";

/**
 * The source that determines how often an ensemble tensor is produced: once for the request, or once for each response of this decoupled
 * step.
 */
type Origin = "request" | EnsembleStepConfig;

/**
 * Returns whether an ensemble is decoupled. Rejects an ensemble in which a step, or the outputs, would combine tensors that are produced at
 * different rates. These are a tensor that is produced once and one that is produced many times, or tensors of two independent decoupled
 * steps.
 */
export function checkDecoupledOrigins(config: ModelConfig, composing: ReadonlyMap<string, ModelConfig>): boolean {
  if (config.scheduling.kind !== "ensemble") return config.decoupled;
  const origins = new Map<string, Origin>(config.inputs.map((input) => [input.name, "request"]));
  const namers = namersOf(config);
  let isDecoupled = false;
  // The loop repeats because steps may be listed in any order. Steps of a cycle never get an origin, and never run.
  let waiting: readonly EnsembleStepConfig[] = config.scheduling.steps;
  for (let waitingCount = -1; waiting.length !== waitingCount;) {
    waitingCount = waiting.length;
    waiting = waiting.filter((step) => {
      const read = [...step.inputMap.values()];
      if (!read.every((tensor) => origins.has(tensor))) return true;
      const [written = ""] = step.outputMap.values();
      const origin = commonOrigin(config.name, namers.get(written) ?? step.modelName, read, origins);
      const created = composing.get(step.modelName)?.decoupled ? step : origin;
      isDecoupled ||= created === step;
      for (const tensor of step.outputMap.values()) origins.set(tensor, created);
      return false;
    });
  }
  const outputs = config.outputs.map((output) => output.name).filter((name) => origins.has(name));
  commonOrigin(config.name, config.name, outputs, origins);
  return isDecoupled;
}

/**
 * Maps each tensor to the model that Triton's errors name: the ensemble if the tensor is one of its inputs or outputs, otherwise the first
 * step that reads or writes the tensor.
 */
function namersOf(config: ModelConfig): ReadonlyMap<string, string> {
  const namers = new Map<string, string>();
  for (const { name } of [...config.inputs, ...config.outputs]) namers.set(name, config.name);
  if (config.scheduling.kind !== "ensemble") return namers;
  for (const { modelName, inputMap, outputMap } of config.scheduling.steps)
    for (const tensor of [...inputMap.values(), ...outputMap.values()])
      if (!namers.has(tensor)) namers.set(tensor, modelName);
  return namers;
}

function commonOrigin(
  ensemble: string,
  reader: string,
  tensors: readonly string[],
  origins: ReadonlyMap<string, Origin>,
): Origin {
  const [first = "request", ...others] = tensors.map((tensor) => origins.get(tensor) as Origin);
  const refused = `step of model '${reader}' receives inputs originated from different decoupled models`;
  if (others.some((other) => other !== first)) throwInvalidConfig(`in ensemble ${ensemble}, ${refused}`);
  return first;
}

/** Returns the configuration with `decoupled` set. */
export function withDecoupled(config: ModelConfig, decoupled: boolean): ModelConfig {
  if (config.decoupled === decoupled && config.message.modelTransactionPolicy !== undefined) return config;
  const message = clone(ModelConfigSchema, config.message);
  message.modelTransactionPolicy = create(ModelTransactionPolicySchema, { decoupled });
  return toModelConfig(message);
}
