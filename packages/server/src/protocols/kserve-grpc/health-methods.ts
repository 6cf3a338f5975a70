import type { Engine } from "../../engine/index.ts";
import { Health, HealthCheckResponse_ServingStatus as Status } from "./gen/health_pb.js";
import { unaryMethod, type CallHandler } from "./unary-method.ts";

/**
 * Returns the methods of the standard gRPC health service. As in Triton, every service name reports the whole server, and Watch is not
 * implemented.
 */
export function healthMethods(engine: Engine): ReadonlyMap<string, CallHandler> {
  const check = unaryMethod(Health.method.check, () => ({
    status: engine.ready ? Status.SERVING : Status.NOT_SERVING,
  }));
  return new Map([["Check", check]]);
}
