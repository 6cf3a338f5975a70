/** Reconcilers: each brings what runs to what is recorded, for endpoints, inference components and transform jobs, and resumes after a restart. */
export { sharedInstances, ComponentReconciler } from "./component-reconciler.ts";
export { type LookAtAlarm, EndpointReconciler } from "./endpoint-reconciler.ts";
export { usedCount, SharedVariants } from "./shared-variants.ts";
export { TransformReconciler } from "./transform-reconciler.ts";
