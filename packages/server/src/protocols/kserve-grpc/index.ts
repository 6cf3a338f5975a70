/**
 * GRPCInferenceService, the health service and reflection. Tensors are read from the connection directly to shared memory, and are sent
 * directly from there. Generated protobuf code handles all other messages.
 */
export { openKserveGrpc, type KserveGrpcOptions } from "./kserve-grpc-listener.ts";
