/** The protocols over which clients reach the server, one folder each. They use the engine only through its public interface. */
export {
  defaultContainerLimits,
  inferenceTypes,
  openContainer,
  type ContainerFormat,
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
