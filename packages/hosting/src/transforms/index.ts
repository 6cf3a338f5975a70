/**
 * Batch transform: the state machine of jobs, and the run of a job with its instances and the processing of each
 * object.
 */
export { JobMemory } from "./job-memory.ts";
export { JobRun } from "./job-run.ts";
export { transformPlan, type TransformRequest } from "./transform-request.ts";
export {
  isTransformInProgress,
  applyTransformEvent,
  initialTransformProgress,
  transformOwnerName,
  type TransformEvent,
  type TransformJobRecord,
  type TransformProgress,
  type TransformState,
} from "./transform-state.ts";
export { transformFootprint } from "./variant-plan.ts";
