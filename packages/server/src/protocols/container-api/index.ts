/**
 * The HTTP API of a SageMaker container: /ping and /invocations; for multi-model endpoints also /models with load (200, 409, 507, 400),
 * list, describe, unload and invoke. Archives are in `mlRoot`, which replaces /opt/ml; each archive has its own namespace of the engine.
 *
 * In addition to SageMaker's contract, the response to a load has `X-Galatea-Load-Milliseconds` (duration of the load) and
 * `X-Galatea-Model-Bytes` (growth of the engine's memory).
 *
 * The format of bodies and errors is Triton's, or that of a `PayloadCodec` (bytes with a content type in both directions).
 */
export { openContainer, type ContainerOptions } from "./container-listener.ts";
export type { ContainerFormat } from "./container-routes.ts";
export { inferenceTypes, type InferenceType } from "./triton-calls.ts";
export { defaultContainerLimits } from "./limits.ts";
export {
  PayloadErrorResponse,
  type CallPayload,
  type PayloadCodec,
  type PayloadReply,
  type PayloadRequest,
} from "./payload-codec.ts";
