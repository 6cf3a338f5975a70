/**
 * The contract between the engine and the backends. Backends do not depend on each other, with one exception: `algorithms` uses the tree
 * parsers of `fil`.
 */
export type { Backend, LoadContext, LoadedModel, ModelCheck, ModelSource } from "./backend.ts";
export { machineBytes, type DeviceBytes, type MemoryDevice } from "./device-bytes.ts";
export type { ModelCall, BlsClient } from "./bls-client.ts";
export type { NamespaceMetrics } from "./namespace-metrics.ts";
export { noNamespaceMetrics } from "./no-namespace-metrics.ts";
export { findBackend } from "./find-backend.ts";
export { noBlsClient } from "./no-bls-client.ts";
export { type SessionLease, SharedSessions } from "./shared-sessions.ts";
export { executionTimeout } from "./execution-timeout.ts";
