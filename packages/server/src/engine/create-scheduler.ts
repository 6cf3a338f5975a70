import { assert, type Clock } from "@galatea/base";
import type { LoadedModel } from "../backends/index.ts";
import type { ModelConfig } from "../modelconfig/index.ts";
import {
  createDirectScheduler,
  createDynamicBatchScheduler,
  createEnsembleScheduler,
  type Scheduler,
  type StepModels,
} from "../scheduling/index.ts";
import type { ServingVersion } from "./serving-version.ts";

/** The instances of a model, or the versions that an ensemble's steps run on, in the order of the steps. */
export type Composition =
  | { readonly kind: "model"; readonly model: LoadedModel }
  | { readonly kind: "ensemble"; readonly steps: readonly ServingVersion[] };

export interface SchedulerDependencies {
  readonly modelVersion: string;
  readonly clock: Clock;
  readonly queueLengthMax: number;
}

/** Creates the scheduler that a configuration selects. */
export function createScheduler(
  config: ModelConfig,
  created: Composition,
  dependencies: SchedulerDependencies,
): Scheduler {
  if (created.kind === "model") {
    const { instances: own, spares = [] } = created.model;
    const instances = [...own, ...spares];
    return config.scheduling.kind === "dynamic"
      ? createDynamicBatchScheduler(instances, config, dependencies)
      : createDirectScheduler(instances, dependencies);
  }
  const { steps } = created;
  const stepAt = (index: number): ServingVersion => {
    const step = steps[index];
    assert(step !== undefined, `${config.name} has a step ${index}`);
    return step;
  };
  const models: StepModels = {
    infer: (step, request, record) => stepAt(step).submit(request, record),
    stream: (step, request, record) => stepAt(step).submit(request, record),
  };
  const stepConfigs = steps.map((step) => step.config);
  return createEnsembleScheduler(config, stepConfigs, models, dependencies);
}
