import type { Clock } from "@galatea/base";
import { hostingArn } from "@galatea/hosting";
import runtime from "../../spec/gen/sagemaker-runtime.json" with { type: "json" };
import type { SagemakerRuntimeOperations } from "../../spec/gen/sagemaker-runtime.ts";
import { asServiceModel } from "../../spec/index.ts";
import { sendAwsError, openedCall, verifiedRequest, type RawOperationRow, type RawService } from "../../wire/index.ts";
import { invokeEndpointAsync, type AsyncInvokedHosting } from "./invoke-endpoint-async.ts";
import { invokeEndpoint, type InvocationOptions, type InvokeCall } from "./invoke-endpoint.ts";
import { invokeWithStream } from "./invoke-with-stream.ts";
import { parseRuntimePath } from "./runtime-path.ts";

export interface RuntimeDependencies extends InvocationOptions {
  readonly hosting: InvocationOptions["hosting"] & AsyncInvokedHosting;
  readonly clock: Clock;
}

const scope = "sagemaker";
const model = asServiceModel(runtime);
const validationCodes = { json: "ValidationError", query: "ValidationError" };

/**
 * InvokeEndpoint and InvokeEndpointWithResponseStream. Invocations are the most frequent requests, so this service
 * reads the request line and a few headers itself, without the generic parser of `wire`.
 */
export function runtimeService({ clock, ...parts }: RuntimeDependencies) {
  const { requestBytesMax } = parts;
  const resource = ({ endpointName, context }: InvokeCall) => hostingArn("endpoint", endpointName, context);
  const operations: Readonly<Record<keyof SagemakerRuntimeOperations, RawOperationRow<InvokeCall>>> = {
    InvokeEndpoint: {
      action: "sagemaker:InvokeEndpoint",
      resource,
      handle: (call) => invokeEndpoint(parts, call),
    },
    InvokeEndpointAsync: {
      action: "sagemaker:InvokeEndpointAsync",
      resource,
      handle: (call) => invokeEndpointAsync(parts.hosting, call),
    },
    // SageMaker's IAM has no separate permission for streaming.
    InvokeEndpointWithResponseStream: {
      action: "sagemaker:InvokeEndpoint",
      resource,
      handle: (call) => invokeWithStream(parts, call),
    },
  };
  return {
    kind: "raw",
    protocol: "rest-json",
    model,
    scope,
    operations,
    setHeaders: (response, requestId) => void response.setHeader("x-amzn-RequestId", requestId),
    async open(exchange) {
      const receivedNs = clock.monotonicNs();
      const request = await verifiedRequest(exchange, requestBytesMax, scope);
      const { operation, endpointName } = parseRuntimePath(request);
      const { response, context } = exchange;
      return openedCall(operations[operation], { endpointName, request, response, context, receivedNs });
    },
    sendError: (exchange, thrown) =>
      sendAwsError(
        { ...exchange, errors: { model, validationCodes }, protocol: "rest-json", operation: model.service },
        thrown,
      ),
  } as const satisfies RawService;
}
