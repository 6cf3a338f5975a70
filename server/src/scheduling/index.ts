/** Schedulers: how requests become batches and find an instance. */
export type { Scheduler } from "./scheduler.ts";
