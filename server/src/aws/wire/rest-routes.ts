import type { IncomingMessage } from "node:http";
import { AwsError } from "../../base/index.ts";
import { decodeComponent, pathOf } from "../../signing/index.ts";
import { serviceModels, type StructureShape } from "../spec/index.ts";
import { validationCode } from "./errors.ts";
import { scalarFromText } from "./query-protocol.ts";
import { shapeOf, validateInput } from "./validate.ts";

export interface RuntimeCall {
  readonly operation: "InvokeEndpoint" | "InvokeEndpointAsync" | "InvokeEndpointWithResponseStream";
  /** Members bound to the path and to headers, checked against the model (Body is left to the caller). */
  readonly input: Readonly<Record<string, unknown>> & { readonly EndpointName: string };
}

const routes = {
  invocations: "InvokeEndpoint",
  "async-invocations": "InvokeEndpointAsync",
  "invocations-response-stream": "InvokeEndpointWithResponseStream",
} as const;

/** Reads the line and headers of a sagemaker-runtime request. Throws AwsError with the service's codes. */
export function parseRuntimeCall(request: IncomingMessage): RuntimeCall {
  const match = /^\/endpoints\/([^/]+)\/([a-z-]+)$/.exec(pathOf(request.url ?? "/"));
  const route = match?.[2] ?? "";
  if (match === null || !Object.hasOwn(routes, route) || request.method !== "POST") {
    throw new AwsError(
      "UnknownOperationException",
      `No operation for ${request.method} ${pathOf(request.url ?? "/")}`,
      {
        statusFallback: 404,
      },
    );
  }
  const operation = routes[route as keyof typeof routes];
  const model = serviceModels["sagemaker-runtime"];
  const inputName = model.operations[operation]?.input ?? "";
  const shape = shapeOf(model, inputName) as StructureShape;
  const input: Record<string, unknown> = {};
  for (const [name, member] of Object.entries(shape.members)) {
    const header =
      member.location === "header" ? request.headers[(member.locationName ?? "").toLowerCase()] : undefined;
    const text = member.location === "uri" ? decodeComponent(match[1] ?? "") : header;
    if (typeof text === "string") input[name] = scalarFromText(shapeOf(model, member.shape), member, text, `${name}.`);
  }
  const missingPayload = { ...input, ...(shape.payload === undefined ? {} : { [shape.payload]: new Uint8Array() }) };
  validateInput(model, inputName, missingPayload, validationCode("sagemaker-runtime", "rest-json"));
  return { operation, input: input as RuntimeCall["input"] };
}
