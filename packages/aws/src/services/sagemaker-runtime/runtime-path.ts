import type { IncomingMessage } from "node:http";
import { AwsError } from "@galatea/base";
import type { SagemakerRuntimeOperations } from "../../spec/gen/sagemaker-runtime.ts";

const routes: ReadonlyMap<string | undefined, keyof SagemakerRuntimeOperations> = new Map([
  ["invocations", "InvokeEndpoint"],
  ["async-invocations", "InvokeEndpointAsync"],
  ["invocations-response-stream", "InvokeEndpointWithResponseStream"],
] as const);

/** Returns the operation and the endpoint of a request line. */
export function parseRuntimePath(request: IncomingMessage): {
  readonly operation: keyof SagemakerRuntimeOperations;
  readonly endpointName: string;
} {
  const url = request.url ?? "";
  const end = url.indexOf("?");
  const [empty, endpoints, name, route, ...more] = (end < 0 ? url : url.slice(0, end)).split("/");
  const isKnown = request.method === "POST" && empty === "" && endpoints === "endpoints" && more.length === 0;
  const operation = isKnown ? routes.get(route) : undefined;
  if (operation === undefined || name === undefined) {
    throw new AwsError("UnknownOperationException", `No operation for ${request.method} ${url}`, {
      statusFallback: 404,
    });
  }
  const endpointName = decoded(name);
  checkEndpointName(endpointName);
  return { operation, endpointName };
}

export function checkEndpointName(endpointName: string): void {
  if (/^[a-zA-Z0-9](-*[a-zA-Z0-9]){0,62}$/.test(endpointName)) return;
  const pattern = "[a-zA-Z0-9](-*[a-zA-Z0-9]){0,62}";
  throw constraintError("endpointName", endpointName, `Member must satisfy regular expression pattern: ${pattern}`);
}

function decoded(name: string): string {
  try {
    return decodeURIComponent(name);
  } catch {
    return name;
  }
}

/** Returns the error for a member that violates a constraint, with the wording of AWS services. */
export function constraintError(member: string, value: string, rule: string): AwsError {
  const shown = value.length > 256 ? `${value.slice(0, 256)}...` : value;
  const text = `1 validation error detected: Value '${shown}' at '${member}' failed to satisfy constraint: ${rule}`;
  return new AwsError("ValidationError", text);
}
