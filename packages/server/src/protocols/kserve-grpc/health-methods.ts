import type { Engine } from "../../engine/index.ts";
import { Health, HealthCheckResponse_ServingStatus as Status } from "./gen/health_pb.js";
import { unaryMethod, type BeginCall } from "./unary-method.ts";

/**
 * Returns the methods of the standard health service. As in Triton, every service name reports the whole server, and there is no Watch.
 */
export function healthMethods(engine: Engine): ReadonlyMap<string, BeginCall> {
  const check = unaryMethod(Health.method.check, () => ({
    status: engine.ready ? Status.SERVING : Status.NOT_SERVING,
  }));
  return new Map([["Check", check]]);
}
