/**
 * gRPC for every protocol that speaks it: a listener over HTTP/2 with every limit named, calls whose signal aborts when the client
 * has cancelled or its deadline has passed, messages that are read as they arrive, and one status at the end of each call.
 * Knows no service and no model.
 */
export { Call, type CallReceiver } from "./call.ts";
export { GatheredMessage } from "./gathered-message.ts";
export type { KeepaliveOptions } from "./keepalive.ts";
export { defaultGrpcLimits } from "./limits.ts";
export { openGrpcListener, type GrpcListenerOptions, type GrpcTls, type SecureListener } from "./listener.ts";
export type { MessageSink } from "./message-splitter.ts";
export { GrpcError, grpcStatusOf } from "./status.ts";
