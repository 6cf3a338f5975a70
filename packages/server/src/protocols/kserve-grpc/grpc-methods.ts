import type { DescService } from "@bufbuild/protobuf";
import type { ByteBudget, Clock } from "@galatea/base";
import type { Engine } from "../../engine/index.ts";
import { GrpcError } from "../grpc-listener/index.ts";
import type { RestrictedApi, Restriction, Restrictions } from "../restricted-apis.ts";
import { GRPCInferenceService } from "./gen/grpc_service_pb.js";
import { Health } from "./gen/health_pb.js";
import { ServerReflection } from "./gen/reflection_v1_pb.js";
import { ServerReflection as ServerReflectionAlpha } from "./gen/reflection_v1alpha_pb.js";
import { healthMethods } from "./health-methods.ts";
import { InferenceService } from "./inference-service.ts";
import { reflectionMethod } from "./reflection-method.ts";
import { serverMethods } from "./server-methods.ts";
import type { CallHandler } from "./unary-method.ts";

export interface GrpcMethodsOptions {
  readonly engine: Engine;
  readonly restrictions: Restrictions;
  /** Pattern of the whole names of metadata that become request parameters; null for none. */
  readonly forwardedHeaders: RegExp | null;
  readonly budget: ByteBudget;
  readonly clock: Clock;
}

/** Every method of GRPCInferenceService, with the API group by which it can be restricted. */
const categories: Readonly<Record<string, RestrictedApi>> = {
  ServerLive: "health",
  ServerReady: "health",
  ModelReady: "health",
  ServerMetadata: "metadata",
  ModelMetadata: "metadata",
  ModelInfer: "inference",
  ModelStreamInfer: "inference",
  ModelConfig: "model-config",
  ModelStatistics: "statistics",
  RepositoryIndex: "model-repository",
  RepositoryModelLoad: "model-repository",
  RepositoryModelUnload: "model-repository",
  SystemSharedMemoryStatus: "shared-memory",
  SystemSharedMemoryRegister: "shared-memory",
  SystemSharedMemoryUnregister: "shared-memory",
  CudaSharedMemoryStatus: "shared-memory",
  CudaSharedMemoryRegister: "shared-memory",
  CudaSharedMemoryUnregister: "shared-memory",
  TraceSetting: "trace",
  LogSettings: "logging",
};

/** Error texts of extensions that are not implemented. */
const notBuilt: Readonly<Partial<Record<RestrictedApi, string>>> = {
  "shared-memory": "the shared memory extension is not supported by this server yet",
  trace: "the trace extension is not supported by this server yet",
  logging: "the logging extension is not supported by this server yet",
};

/** Returns the handlers of all methods, by path. */
export function grpcMethods(options: GrpcMethodsOptions): ReadonlyMap<string, CallHandler> {
  const { engine, restrictions, forwardedHeaders, budget, clock } = options;
  const inference = new InferenceService({ engine, forwardedHeaders, budget, clock });
  const built = new Map<string, CallHandler>([
    ...serverMethods(engine),
    ["ModelInfer", (call) => inference.modelInfer(call)],
    ["ModelStreamInfer", (call) => inference.modelStreamInfer(call)],
  ]);
  const methods = new Map<string, CallHandler>();
  for (const [name, category] of Object.entries(categories)) {
    const begin = built.get(name) ?? refusal(notBuilt[category] ?? `${name} is not supported by this server yet`);
    methods.set(pathOf(GRPCInferenceService, name), restricted(begin, restrictions.get(category)));
  }
  for (const [name, begin] of healthMethods(engine))
    methods.set(pathOf(Health, name), restricted(begin, restrictions.get("health")));
  const services = [GRPCInferenceService, Health, ServerReflection, ServerReflectionAlpha];
  const reflection = restricted(reflectionMethod(services), restrictions.get("metadata"));
  for (const service of [ServerReflection, ServerReflectionAlpha])
    methods.set(pathOf(service, "ServerReflectionInfo"), reflection);
  return methods;
}

function pathOf(service: DescService, method: string): string {
  return `/${service.typeName}/${method}`;
}

function refusal(message: string): CallHandler {
  return (call) => call.fail(new GrpcError("UNIMPLEMENTED", message));
}

function restricted(begin: CallHandler, restriction: Restriction | undefined): CallHandler {
  if (restriction === undefined) return begin;
  const { header, value } = restriction;
  return (call) => {
    if (call.headers[header.toLowerCase()] === value) return begin(call);
    call.fail(new GrpcError("UNAVAILABLE", `This protocol is restricted, expecting header '${header}'`));
  };
}
