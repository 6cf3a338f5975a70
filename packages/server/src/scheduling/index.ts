/**
 * Schedulers: each queues the requests of one model version and runs them on its instances, or on the models of an ensemble's steps.
 * - `createDirectScheduler(instances, options)`: runs each request alone, in order of arrival, on the least loaded instance.
 * - `createDynamicBatchScheduler(instances, config, options)`: runs batches of waiting requests; requires `config.scheduling.kind`
 *   `dynamic`.
 * - `createEnsembleScheduler(config, stepConfigs, models, options)`: runs ensembles; requires kind `ensemble`. `stepConfigs` are the
 *   completed configurations of the steps' models, in the order of the steps.
 *
 * A scheduler borrows the instances; their owner disposes them after `close()` has resolved. `record.startedNs` stays 0 for a request that
 * no instance received. An ensemble sets `record.startedNs` when the request arrives.
 */
export { createDirectScheduler } from "./direct-scheduler.ts";
export { createDynamicBatchScheduler } from "./dynamic-batch-scheduler.ts";
export { createEnsembleScheduler } from "./ensemble-scheduler.ts";
export type { StepModels } from "./options.ts";
export type { Scheduler, SchedulerResult } from "./scheduler.ts";
