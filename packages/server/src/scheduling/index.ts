/**
 * Schedulers, which form batches of requests and assign them to instances.
 * - `createDirectScheduler(instances, options)`: each request alone, first come first served, on the least loaded instance.
 * - `createDynamicBatchScheduler(instances, config, options)`: `config.scheduling` is of kind `dynamic`.
 * - `createEnsembleScheduler(config, stepConfigs, models, options)`: `config.scheduling` is of kind `ensemble`; `stepConfigs` are the
 *   completed configurations of the steps' models, in the order of the steps.
 *
 * A scheduler borrows the instances; their owner disposes them after `close()` has resolved. A request that was never handed to an
 * instance has `record.startedNs` 0.
 */
export { createDirectScheduler } from "./direct-scheduler.ts";
export { createDynamicBatchScheduler } from "./dynamic-batch-scheduler.ts";
export { createEnsembleScheduler } from "./ensemble-scheduler.ts";
export type { StepModels } from "./options.ts";
export type { Scheduler, Settlement } from "./scheduler.ts";
