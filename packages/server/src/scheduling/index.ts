/**
 * Schedulers: how requests become batches and find an instance.
 *
 * `createDirectScheduler(instances, options)`: each request alone, first come first served, to the least loaded instance.
 * `createDynamicBatchScheduler(instances, config, options)`: `config.scheduling` is of kind `dynamic`.
 * `createEnsembleScheduler(config, stepConfigs, models, options)`: `config.scheduling` is of kind `ensemble`; `stepConfigs` are the
 * completed configurations of the steps' models, in the order of the steps.
 * A scheduler borrows the instances; whoever made them disposes them after `close()` has resolved.
 * A request that was never handed to an instance leaves `record.startedNs` at 0.
 */
export { createDirectScheduler } from "./direct-scheduler.ts";
export { createDynamicBatchScheduler } from "./dynamic-batch-scheduler.ts";
export { createEnsembleScheduler } from "./ensemble-scheduler.ts";
export type { StepModels } from "./options.ts";
export type { Scheduler, Settlement } from "./scheduler.ts";
