import { AwsError } from "@galatea/base";
import { parseS3Uri } from "../definitions/index.ts";
import type { EndpointRecord } from "../endpoints/index.ts";
import { endpointNotFound } from "../invocations/index.ts";
import type { AsyncInput, AsyncInvocation } from "./async-invocation.ts";
import { timeLimitSecondsDefault, ttlSecondsDefault } from "./async-limits.ts";
import { chooseOutputLocations } from "./output-locations.ts";

/** An InvokeEndpointAsync request. Either `inputUrl` or `body` is set. */
export interface AsyncRequest {
  readonly headers: Readonly<Record<string, string>>;
  readonly inferenceId: string | null;
  readonly inputUrl: string | null;
  readonly body: Buffer | null;
  readonly ttlSeconds: number | null;
  readonly timeLimitSeconds: number | null;
  readonly extension: string | null;
  readonly fileName: string | null;
}

/** The response of InvokeEndpointAsync to an accepted request. */
export interface AsyncReceipt {
  readonly inferenceId: string;
  readonly outputUrl: string | null;
  readonly failureUrl: string | null;
}

/**
 * Returns the invocation to queue for a request. Throws AwsError if the endpoint is not an asynchronous one or the
 * request is invalid.
 */
export function newAsyncInvocation(
  { name, createdMs, owner, state, generations }: EndpointRecord,
  request: AsyncRequest,
  { id, nowMs }: { readonly id: string; readonly nowMs: number },
): AsyncInvocation {
  const { at } = state;
  if (at === "Creating" || at === "Deleting" || at === "Failed") throw endpointNotFound(name, owner.accountId);
  const config = generations[0].asyncInference;
  if (config === undefined) {
    const text = `Endpoint ${name} of account ${owner.accountId} is not an asynchronous endpoint: it has no AsyncInferenceConfig.`;
    throw new AwsError("ValidationError", text);
  }
  const inferenceId = request.inferenceId ?? id;
  const { extension, fileName, headers } = request;
  const { NotificationConfig: notified = {} } = config.OutputConfig;
  const included = notified.IncludeInferenceResponseIn ?? [];
  return {
    inferenceId,
    endpoint: { name, createdMs, ...owner },
    variantName: generations[0].variants[0]?.plan.variant.VariantName ?? "",
    receivedMs: nowMs,
    expiresMs: nowMs + 1000 * (request.ttlSeconds ?? ttlSecondsDefault),
    timeLimitMs: 1000 * (request.timeLimitSeconds ?? timeLimitSecondsDefault),
    headers: { ...headers, "x-amzn-sagemaker-inference-id": inferenceId },
    input: inputOf(request),
    ...chooseOutputLocations(config, { id, extension, fileName }),
    topics: {
      success: notified.SuccessTopic ?? null,
      error: notified.ErrorTopic ?? null,
      includesIn: {
        success: included.includes("SUCCESS_NOTIFICATION_TOPIC"),
        error: included.includes("ERROR_NOTIFICATION_TOPIC"),
      },
    },
    lostCount: 0,
  };
}

function inputOf({ inputUrl, body }: AsyncRequest): AsyncInput {
  if (inputUrl === null) return { at: "record", byteLength: body?.length ?? 0 };
  const location = parseS3Uri(inputUrl);
  if (location === null || location.key === "") {
    throw new AwsError(
      "ValidationError",
      `InputLocation ${inputUrl} is not the URL of an S3 object. Use the form s3://bucket/key.`,
    );
  }
  return { at: "object", url: inputUrl, location };
}
