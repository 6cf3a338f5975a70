import {
  create,
  fromBinary,
  toBinary,
  toJson,
  type DescMethod,
  type DescService,
  type MessageInitShape,
} from "@bufbuild/protobuf";
import {
  GRPCInferenceService,
  ModelInferRequestSchema,
  type ModelInferRequest,
} from "../../packages/server/src/protocols/kserve-grpc/gen/grpc_service_pb.js";
import { Health } from "../../packages/server/src/protocols/kserve-grpc/gen/health_pb.js";
import type { ComparedResponse, Comparison, Request, Step } from "./case.ts";
import { frameMessage, type GrpcReply } from "../../packages/server/src/protocols/raw-grpc-client.ts";

const services: readonly DescService[] = [GRPCInferenceService, Health];

/** Added to gRPC codes to distinguish them from HTTP statuses. */
const statusBase = 600;

function methodAt(path: string): DescMethod | undefined {
  const [, service, name] = path.split("/");
  return services.find(({ typeName }) => typeName === service)?.methods.find((method) => method.name === name);
}

/** Returns the result of a call in the recorded and compared form. */
export function responseOf(path: string, reply: GrpcReply): ComparedResponse {
  const method = methodAt(path);
  const json = (value: unknown) => Buffer.from(JSON.stringify(value), "utf8");
  if (reply.status !== 0)
    return { status: statusBase + reply.status, headers: {}, body: json({ error: reply.message }) };
  const messages = reply.messages.map((bytes) =>
    method === undefined
      ? bytes.toString("base64")
      : toJson(method.output, fromBinary(method.output, bytes), { useProtoFieldName: true }),
  );
  return { status: 200, headers: {}, body: json(method?.methodKind === "unary" ? messages[0] : messages) };
}

type InferInit = MessageInitShape<typeof ModelInferRequestSchema>;
type MethodName = keyof typeof GRPCInferenceService.method;

/** Returns a request that calls a method of the inference service. */
export function rpc<const Name extends MethodName>(
  name: Name,
  messages: MessageInitShape<(typeof GRPCInferenceService.method)[Name]["input"]> | readonly Uint8Array[],
  compare: Comparison = "json",
  more: Partial<Request> = {},
): Step {
  const method: DescMethod = GRPCInferenceService.method[name];
  const list = Array.isArray(messages)
    ? (messages as readonly Uint8Array[])
    : [toBinary(method.input, create(method.input, messages as never))];
  return {
    request: {
      method: "GRPC",
      path: `/${GRPCInferenceService.typeName}/${method.name}`,
      body: Buffer.concat(list.map(frameMessage)),
      ...more,
    },
    compare,
  };
}

export const inferMessage = (init: InferInit): Uint8Array =>
  toBinary(ModelInferRequestSchema, create(ModelInferRequestSchema, init));

export const modelInfer = (init: InferInit, compare: Comparison = "json", more: Partial<Request> = {}): Step =>
  rpc("modelInfer", init, compare, more);

/** Returns a step with several requests on one stream; the client half-closes after the last one. */
export const modelStream = (
  requests: readonly InferInit[],
  compare: Comparison = "json",
  more: Partial<Request> = {},
): Step => rpc("modelStreamInfer", requests.map(inferMessage), compare, more);

export type TensorInit = ModelInferRequest["inputs"][number];

/** Returns a tensor whose elements are in raw_input_contents. */
export const rawInput = (name: string, datatype: string, shape: readonly number[]) => ({
  name,
  datatype,
  shape: shape.map(BigInt),
});
