/** One reconciler: it brings what runs to what is recorded, for endpoints, inference components and transform jobs, and resumes after a restart. */
export { ComponentActions } from "./component-actions.ts";
export type { ReadAlarmState } from "./deployment-limits.ts";
export { EndpointActions } from "./endpoint-actions.ts";
export { Reconciler } from "./reconciler.ts";
export { fitsSomewhere, sharedInstances, SharedVariants, usedCount } from "./shared-variants.ts";
export { TransformActions } from "./transform-actions.ts";
