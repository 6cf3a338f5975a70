import { assert, type Clock } from "../base/index.ts";
import type { LoadedModel } from "../backends/index.ts";
import type { ModelConfig } from "../modelconfig/index.ts";
import {
  createDirectScheduler,
  createDynamicBatchScheduler,
  createEnsembleScheduler,
  type RunStep,
  type Scheduler,
} from "../scheduling/index.ts";

/** What a version is made of: instances of its own, or the models that its steps name (their configurations, by name). */
export type Composition =
  | { readonly kind: "model"; readonly model: LoadedModel }
  | { readonly kind: "ensemble"; readonly stepConfigs: ReadonlyMap<string, ModelConfig> };

export interface SchedulerParts {
  readonly modelVersion: string;
  readonly clock: Clock;
  readonly queueLengthMax: number;
  readonly runStep: RunStep;
}

/** The scheduler that a configuration asks for. */
export function schedulerFor(config: ModelConfig, made: Composition, parts: SchedulerParts): Scheduler {
  if (made.kind === "model") {
    const { instances } = made.model;
    return config.scheduling.kind === "dynamic"
      ? createDynamicBatchScheduler(instances, config, parts)
      : createDirectScheduler(instances, parts);
  }
  assert(config.scheduling.kind === "ensemble", `${config.name} is composed of steps`);
  const stepConfigs = config.scheduling.steps.map((step) => {
    const stepConfig = made.stepConfigs.get(step.modelName);
    assert(stepConfig !== undefined, `step ${step.modelName} of ${config.name} is loaded`);
    return stepConfig;
  });
  return createEnsembleScheduler(config, stepConfigs, parts.runStep, parts);
}
