/**
 * The container contract of SageMaker hosting: /ping, /invocations, and for multi-model endpoints /models
 * with load (200, 409, 507, 400), list, describe, unload and invoke. Archives live below `mlRoot`, which stands for /opt/ml;
 * each is a namespace of the engine. A load's reply carries, beyond the contract, `X-Galatea-Load-Milliseconds` (duration
 * of the load) and `X-Galatea-Model-Bytes` (growth of the engine's memory over it).
 * What bodies and errors of calls are is a language: Triton's, or that of a `PayloadCodec` (bytes and a content type in, and out).
 */
export { openContainer, type ContainerOptions } from "./container-listener.ts";
export type { ContainerLanguage } from "./container-routes.ts";
export { inferenceTypes, type InferenceType } from "./triton-calls.ts";
export { defaultContainerLimits } from "./limits.ts";
export {
  PayloadRefusal,
  type CallPayload,
  type PayloadCodec,
  type PayloadReply,
  type PayloadRequest,
} from "./payload-codec.ts";
