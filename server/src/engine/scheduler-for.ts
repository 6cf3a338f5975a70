import type { Clock } from "../base/index.ts";
import type { LoadedModel } from "../backends/index.ts";
import type { ModelConfig } from "../modelconfig/index.ts";
import {
  createDirectScheduler,
  createDynamicBatchScheduler,
  createEnsembleScheduler,
  type RunStep,
  type Scheduler,
} from "../scheduling/index.ts";

export interface SchedulerParts {
  readonly clock: Clock;
  readonly queueLengthMax: number;
  readonly runStep: RunStep;
}

/** The scheduler that a configuration asks for. */
export function schedulerFor(config: ModelConfig, model: LoadedModel | null, parts: SchedulerParts): Scheduler {
  throw new Error(
    String([config, model, parts, createDirectScheduler, createDynamicBatchScheduler, createEnsembleScheduler]),
  );
}
