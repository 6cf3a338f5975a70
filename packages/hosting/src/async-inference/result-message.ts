import type { AsyncFailure, AsyncInvocation } from "./async-invocation.ts";
import { s3Url } from "./output-locations.ts";

/** Maximum bytes of a response that is included in an SNS message. */
export const messageResponseBytesMax = 128 * 1024;

/** The result of an asynchronous request. */
export type AsyncResult =
  | {
      readonly is: "completed";
      readonly variantName: string;
      readonly contentType: string | null;
      /** The response body; null if it is too long for an SNS message. */
      readonly body: Buffer | null;
    }
  | { readonly is: "failed"; readonly failure: AsyncFailure };

const seeElsewhere = "Check S3 path location(if configured) or Cloudwatch for additional details.";

/** Returns the JSON that SageMaker publishes to an endpoint's topic. */
export function resultMessage(invocation: AsyncInvocation, result: AsyncResult, nowMs: number): string {
  const { endpoint, headers, input, inferenceId, receivedMs } = invocation;
  const { accept, "content-type": contentType } = headers;
  return JSON.stringify({
    awsRegion: endpoint.region,
    eventTime: new Date(nowMs).toISOString(),
    receivedTime: new Date(receivedMs).toISOString(),
    invocationStatus: result.is === "completed" ? "Completed" : "Failed",
    ...(result.is === "failed" ? { failureReason: result.failure.reason } : {}),
    requestParameters: {
      ...(accept === undefined ? {} : { accept }),
      ...(contentType === undefined ? {} : { contentType }),
      endpointName: endpoint.name,
      ...(input.at === "object" ? { inputLocation: input.url } : {}),
    },
    ...responseOf(invocation, result),
    ...includedOf(invocation, result),
    inferenceId,
    eventVersion: "1.0",
    eventSource: "aws:sagemaker",
    eventName: "InferenceResult",
  });
}

function responseOf({ output }: AsyncInvocation, result: AsyncResult): object {
  if (result.is === "failed") return {};
  const { contentType } = result;
  return {
    responseParameters: {
      ...(contentType === null ? {} : { contentType }),
      ...(output === null ? {} : { outputLocation: s3Url(output) }),
    },
  };
}

function includedOf({ topics }: AsyncInvocation, result: AsyncResult): object {
  if (result.is === "failed") {
    if (!topics.includesIn.error) return {};
    const text = Buffer.from(result.failure.text);
    if (text.length > messageResponseBytesMax) return {};
    return { responseBody: { content: text.toString("base64"), message: seeElsewhere, encoding: "BASE64" } };
  }
  if (!topics.includesIn.success || result.body === null) return {};
  return { responseBody: { content: result.body.toString("base64"), message: seeElsewhere, encoding: "BASE64" } };
}
