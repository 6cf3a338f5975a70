/**
 * The container contract of SageMaker hosting, as Triton speaks it: /ping, /invocations, and for multi-model endpoints /models
 * with load (200, 409, 507, 400), list, describe, unload and invoke. Archives live below `mlRoot`, which stands for /opt/ml;
 * each is a namespace of the engine. A load's reply carries, beyond the contract, `X-Galatea-Load-Milliseconds` (duration
 * of the load) and `X-Galatea-Model-Bytes` (growth of the engine's memory over it).
 */
export { openContainer, type ContainerOptions } from "./container-listener.ts";
export type { ContainerRoutesOptions } from "./container-routes.ts";
export type { ChooseModelDirectory } from "./hosted-models.ts";
export { inferenceTypes, type InferenceType } from "./model-calls.ts";
export { defaultContainerLimits, type ContainerLimits } from "./limits.ts";
