/**
 * A gRPC listener over HTTP/2 that limits all resources of a client. A call has a signal that aborts when the client has cancelled or its
 * deadline has passed. Messages are read as they arrive, and each call ends with one status. Independent of services and models.
 */
export { Call, type CallReceiver } from "./call.ts";
export { BufferedMessage } from "./buffered-message.ts";
export type { KeepaliveOptions } from "./keepalive.ts";
export { defaultGrpcLimits } from "./limits.ts";
export { openGrpcListener, type GrpcListenerOptions, type GrpcTls, type SecureListener } from "./listener.ts";
export type { MessageSink } from "./message-splitter.ts";
export { GrpcError, grpcStatusOf } from "./status.ts";
