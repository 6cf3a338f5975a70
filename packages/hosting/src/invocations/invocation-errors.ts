import { AwsError } from "@galatea/base";
import { parseS3Uri, type ModelRecord } from "../definitions/index.ts";
import {
  ContainerConnectionLost,
  InstanceFailure,
  ModelLoadError,
  ModelMissingError,
  ModelNotReadyError,
} from "../instance-agent/index.ts";
import type { InvocationRequest } from "./invocation.ts";

/** The container that an error message names, and the location of its logs. */
export interface InvocationSource {
  /** Name of the container; "primary" for a single container. */
  readonly containerName: string;
  readonly logGroup: string;
  readonly accountId: string;
  readonly region: string;
  /** Returns the URL of a log group. */
  readonly logsLink: (group: string) => string;
  readonly logStreamArn: string;
}

/**
 * Returns SageMaker's error for a failure of a container. The wording is exactly SageMaker's, because clients and
 * dashboards match on it.
 */
export function containerError(
  status: number,
  message: string,
  location: InvocationSource,
  options: ErrorOptions = {},
): AwsError {
  const side = status >= 400 && status < 500 ? "client" : "server";
  const text =
    `Received ${side} error (${status}) from ${location.containerName} with message "${message}". ` +
    `See ${location.logsLink(location.logGroup)} ` +
    `in account ${location.accountId} for more information.`;
  return new AwsError("ModelError", text, {
    ...options,
    statusFallback: 424,
    members: { OriginalStatusCode: status, OriginalMessage: message, LogStreamArn: location.logStreamArn },
  });
}

/** Returns the error for a container whose connection failed. */
export function connectionError(error: unknown, location: InvocationSource): AwsError {
  const text = error instanceof Error ? error.message : String(error);
  const cause = error instanceof ContainerConnectionLost ? error : new ContainerConnectionLost(text, { cause: error });
  return containerError(503, `The container did not respond: ${text}`, location, { cause });
}

/** The reason of a request's signal when the caller's own time limit has expired. */
export class InvocationTimeout extends Error {}

export function timeoutText(containerName: string): string {
  return (
    `Your invocation timed out while waiting for a response from container ${containerName}. Review the latency metrics for each ` +
    "container in Amazon CloudWatch, resolve the issue, and try again."
  );
}

/** Returns the error for a stream that ends early, with one of SageMaker's two error codes. */
export function streamError(
  cause: unknown,
  { isLate, containerName }: { readonly isLate: boolean; readonly containerName: string },
): AwsError {
  const ErrorCode = isLate ? "ModelInvocationTimeExceeded" : "StreamBroken";
  const why = cause instanceof Error ? cause.message : String(cause);
  const text = isLate ? timeoutText(containerName) : `The stream from container ${containerName} broke off: ${why}`;
  return new AwsError("ModelStreamError", text, { members: { ErrorCode }, cause });
}

export function endpointNotFound(name: string, accountId: string): AwsError {
  return new AwsError("ValidationError", `Endpoint ${name} of account ${accountId} not found.`);
}

export function endpointStopped(name: string, accountId: string): AwsError {
  const text = `Endpoint ${name} of account ${accountId} is stopped. \`galatea endpoint start ${name}\` starts it again.`;
  return new AwsError("ValidationError", text);
}

/**
 * Throws SageMaker's error if the request names a target container or model that the endpoint does not support, or
 * lacks one that it requires.
 */
export function checkTargets(
  request: Pick<InvocationRequest, "targetModel" | "targetContainer" | "containerPath">,
  { containers, executionMode }: ModelRecord,
  endpointName: string,
): void {
  const refuse = (text: string) => {
    throw new AwsError("ValidationError", text);
  };
  const { targetModel, targetContainer, containerPath } = request;
  if (containerPath !== undefined && containers.length > 1) {
    refuse(
      `Endpoint ${endpointName} has several containers: ${containerPath} requires an endpoint with one container.`,
    );
  }
  const isDirect = executionMode === "Direct";
  if (!isDirect && targetContainer !== null) {
    refuse(
      `Endpoint ${endpointName} is not a multi-container endpoint with direct invocation and does not support target container hostname header.`,
    );
  }
  if (isDirect && targetContainer === null) {
    refuse(
      `Endpoint ${endpointName} is a multi-container endpoint with direct invocation, and requires a target container hostname header.`,
    );
  }
  const named = isDirect ? containers.filter(({ ContainerHostname: name }) => name === targetContainer) : containers;
  if (named.length === 0) {
    refuse(`Container ${targetContainer} not found for Request of endpoint ${endpointName}.`);
  }
  const isMultiModel = named.some(({ Mode: mode }) => mode === "MultiModel");
  if (isMultiModel && targetModel === null) {
    refuse(`Endpoint ${endpointName} is a multi-model endpoint, and requires a target model header.`);
  }
  if (!isMultiModel && targetModel !== null) {
    refuse(`Endpoint ${endpointName} is not a multi-model endpoint and does not support target model header.`);
  }
}

/**
 * Returns the error for a body above the limit. The error code is the HTTP status, because SageMaker's clients report
 * `An error occurred (413)`. `answeredBy` is the container that sent the body; null for the client.
 */
export function payloadTooLarge(limitBytes: number, answeredBy: string | null = null): AwsError {
  const whose = answeredBy === null ? "" : ` They are the response of container ${answeredBy}.`;
  return new AwsError("413", `HTTP content length exceeded ${limitBytes} bytes.${whose}`, { statusFallback: 413 });
}

/**
 * Returns SageMaker's error for a model of a multi-model endpoint that could not be acquired. Returns unrelated errors
 * unchanged.
 */
export function toModelError(thrown: unknown, dataUrl: string, location: InvocationSource): unknown {
  if (thrown instanceof ModelMissingError) {
    const { bucket, key } = parseS3Uri(dataUrl) ?? { bucket: "", key: "" };
    return new AwsError(
      "ValidationError",
      `Failed to download model data(bucket: ${bucket}, key: ${key}${thrown.target}). Please ensure that there is an object located at ` +
        "the URL and that the role passed to CreateModel has permissions to download the model.",
      { cause: thrown },
    );
  }
  if (thrown instanceof ModelNotReadyError) {
    return new AwsError(
      "ModelNotReadyException",
      `The model is not ready for inference: it is being loaded (${thrown.reason}). Loading continues; send the request again.`,
      { statusFallback: 429, cause: thrown },
    );
  }
  if (thrown instanceof InstanceFailure) {
    return containerError(503, `The container is not in service: ${thrown.message}`, location);
  }
  if (thrown instanceof ModelLoadError) return containerError(thrown.status, thrown.message, location);
  if (thrown instanceof ContainerConnectionLost) return connectionError(thrown, location);
  return thrown;
}
