/** Front ends, one folder per protocol; all use the engine's public interface and no module below it. */
export {
  defaultContainerLimits,
  inferenceTypes,
  openContainer,
  type ContainerLanguage,
  type InferenceType,
  type CallPayload,
  type PayloadCodec,
  type PayloadReply,
  type PayloadRequest,
} from "./container-api/index.ts";
export { defaultHttpLimits, type HttpLimits } from "./http-listener/index.ts";
export { defaultGrpcLimits, type GrpcTls, type KeepaliveOptions } from "./grpc-listener/index.ts";
export { openKserveGrpc } from "./kserve-grpc/index.ts";
export type { RestrictedApi, Restriction, Restrictions } from "./restricted-apis.ts";
export { openKserveHttp } from "./kserve-http/index.ts";
export type { Listener } from "./listener.ts";
export { openMetricsHttp } from "./metrics-http/index.ts";
