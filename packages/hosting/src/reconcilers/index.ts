/** A reconciler that makes running instances follow the records of endpoints, inference components and transform jobs, also after a restart. */
export { ComponentActions } from "./component-actions.ts";
export type { ReadAlarmState } from "./deployment-limits.ts";
export { EndpointActions } from "./endpoint-actions.ts";
export { Reconciler, type ReconcilerOptions } from "./reconciler.ts";
export { StateLog } from "./state-log.ts";
export { fitsSomewhere, sharedInstances, SharedVariants, usedCount } from "./shared-variants.ts";
export { TransformActions } from "./transform-actions.ts";
