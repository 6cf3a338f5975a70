/** The backend contract. Implementations live in the folders beside; no backend imports another, but for pure readers: `algorithms` takes trees of `fil`. */
export type { Backend, LoadContext, LoadedModel, ModelSource } from "./backend.ts";
export { onMachine, type DeviceBytes, type MemoryDevice } from "./device-bytes.ts";
export type { ModelCall, OtherModels } from "./other-models.ts";
export type { HeldFamily, MetricHead, MetricKind, MetricPart, NamespaceMetrics } from "./namespace-metrics.ts";
export { noNamespaceMetrics } from "./no-namespace-metrics.ts";
export { lookForGpu, missingForTensorRt } from "./gpu-machine.ts";
export { insteadOfBackend } from "./unserved-backends.ts";
export { noOtherModels } from "./no-other-models.ts";
export { type SessionLease, SharedSessions } from "./shared-sessions.ts";
export { overdue } from "./overdue.ts";
