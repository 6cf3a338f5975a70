import { openGrpcListener, type GrpcListenerOptions, type SecureListener } from "../grpc-listener/index.ts";
import { grpcMethods, type GrpcMethodsOptions } from "./grpc-methods.ts";

export type KserveGrpcOptions = GrpcMethodsOptions & Omit<GrpcListenerOptions, "method">;

/** Binds the gRPC front end (Triton's port 8001) and starts to serve. */
export function openKserveGrpc({
  engine,
  restrictions,
  forwardedHeaders,
  ...options
}: KserveGrpcOptions): Promise<SecureListener> {
  const { budget, clock } = options;
  const methods = grpcMethods({ engine, restrictions, forwardedHeaders, budget, clock });
  return openGrpcListener({ ...options, method: (path) => methods.get(path) ?? null });
}
