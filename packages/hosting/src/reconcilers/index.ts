/** The reconciler of endpoints, inference components and transform jobs: it starts and stops instances until they match the records, also after a restart. */
export { ComponentActions } from "./component-actions.ts";
export type { ReadAlarmState } from "./deployment-limits.ts";
export { EndpointActions } from "./endpoint-actions.ts";
export { Reconciler, type ReconcilerOptions } from "./reconciler.ts";
export { StateLog } from "./state-log.ts";
export { fitsEmptyInstance, sharedInstanceUsage, SharedVariants, usedInstanceCount } from "./shared-variants.ts";
export { TransformActions } from "./transform-actions.ts";
