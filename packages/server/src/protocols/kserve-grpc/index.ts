/**
 * GRPCInferenceService, the health service and reflection. Tensors of requests go from the connection straight into shared memory,
 * those of responses from there to the connection; everything else is read and written by the generated protobuf code.
 */
export { openKserveGrpc, type KserveGrpcOptions } from "./kserve-grpc-listener.ts";
