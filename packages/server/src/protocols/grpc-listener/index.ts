/**
 * A gRPC listener over HTTP/2 with limits on everything. Calls have a signal that aborts when the client has cancelled or the deadline
 * has passed; messages are read as they arrive; each call ends with one status. Knows no service and no model.
 */
export { Call, type CallReceiver } from "./call.ts";
export { GatheredMessage } from "./gathered-message.ts";
export type { KeepaliveOptions } from "./keepalive.ts";
export { defaultGrpcLimits } from "./limits.ts";
export { openGrpcListener, type GrpcListenerOptions, type GrpcTls, type SecureListener } from "./listener.ts";
export type { MessageSink } from "./message-splitter.ts";
export { GrpcError, grpcStatusOf } from "./status.ts";
