/** The backend contract. No backend imports another, except for pure readers: `algorithms` uses the trees of `fil`. */
export type { Backend, LoadContext, LoadedModel, ModelCheck, ModelSource } from "./backend.ts";
export { onMachine, type DeviceBytes, type MemoryDevice } from "./device-bytes.ts";
export type { ModelCall, OtherModels } from "./other-models.ts";
export type { NamespaceMetrics } from "./namespace-metrics.ts";
export { noNamespaceMetrics } from "./no-namespace-metrics.ts";
export { findBackend } from "./find-backend.ts";
export { noOtherModels } from "./no-other-models.ts";
export { type SessionLease, SharedSessions } from "./shared-sessions.ts";
export { overdue } from "./overdue.ts";
