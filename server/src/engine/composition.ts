import type { LoadedModel } from "../backends/index.ts";
import { checkConfig, refuseUnbuilt, type ModelConfig } from "../modelconfig/index.ts";
import type { Composition } from "./scheduler-for.ts";

/** The model with its charge tied to its life. */
export function chargedModel(model: LoadedModel, release: () => Promise<void>): LoadedModel {
  return {
    instances: model.instances,
    memoryBytes: () => model.memoryBytes(),
    async [Symbol.asyncDispose]() {
      await model[Symbol.asyncDispose]();
      await release();
    },
  };
}

/** An ensemble's version: its steps are up and fit it. */
export function ensembleOf(
  config: ModelConfig,
  stepConfigs: ReadonlyMap<string, ModelConfig>,
): { config: ModelConfig; made: Composition } {
  refuseUnbuilt(config);
  checkConfig(config);
  return { config, made: { kind: "ensemble", stepConfigs } };
}
