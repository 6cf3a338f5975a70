import type { Engine } from "../../engine/index.ts";
import { Health, HealthCheckResponse_ServingStatus as Status } from "./gen/health_pb.js";
import { unaryMethod, type BeginCall } from "./unary-method.ts";

/** The standard health service. As Triton's, it answers for the whole server whatever service is asked for, and knows no Watch. */
export function healthMethods(engine: Engine): ReadonlyMap<string, BeginCall> {
  const check = unaryMethod(Health.method.check, () => ({
    status: engine.ready ? Status.SERVING : Status.NOT_SERVING,
  }));
  return new Map([["Check", check]]);
}
