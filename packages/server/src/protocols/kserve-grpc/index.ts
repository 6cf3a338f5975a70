/**
 * GRPCInferenceService, the health service and reflection. Tensors are read from the connection directly into shared memory and sent from
 * there; generated protobuf code reads and writes everything else.
 */
export { openKserveGrpc, type KserveGrpcOptions } from "./kserve-grpc-listener.ts";
