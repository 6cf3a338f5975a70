/** Batch transform: jobs as state machines, and one life of a job: its instances, and the way of each object through them. */
export { JobMemory } from "./job-memory.ts";
export { JobRun } from "./job-run.ts";
export { transformPlan, type TransformRequest } from "./transform-request.ts";
export {
  isUnderWay,
  moveTransform,
  noProgress,
  transformOwner,
  type TransformEvent,
  type TransformJobRecord,
  type TransformProgress,
  type TransformState,
} from "./transform-state.ts";
export { jobFootprint } from "./variant-plan.ts";
