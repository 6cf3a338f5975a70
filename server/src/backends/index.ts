/** The backend contract. Implementations live in the folders beside; no backend imports another. */
export type { Backend, LoadContext, LoadedModel, ModelSource } from "./backend.ts";
export { onMachine, type DeviceBytes, type MemoryDevice } from "./device-bytes.ts";
export type { ModelCall, OtherModels } from "./other-models.ts";
export type { HeldFamily, MetricHead, MetricKind, MetricPart, ModelMetrics } from "./model-metrics.ts";
export { noModelMetrics } from "./no-model-metrics.ts";
export { noOtherModels } from "./no-other-models.ts";
