import type { Readable } from "node:stream";
import { AwsError, type ByteLease } from "../../base/index.ts";
import { ModelLoadError, ModelMissingError, ModelNotReadyError } from "../agent/index.ts";
import { InstanceFailure } from "../instances/index.ts";
import { modelDataPlace } from "../instances/index.ts";

export interface InvocationLimits {
  readonly requestBytesMax: number;
  readonly responseBytesMax: number;
  /** The service gives a container 60 s; a second less, so that clients with that read time-out still hear the reason. */
  readonly answerMsMax: number;
  /** How long a request waits while every instance of its variant is being started again. */
  readonly restartWaitMsMax: number;
  /** Requests of one instance in flight or waiting; above it 503. */
  readonly requestsMax: number;
}

export const invocationLimits: InvocationLimits = {
  requestBytesMax: 6_291_456,
  responseBytesMax: 6_291_456,
  answerMsMax: 59_000,
  restartWaitMsMax: 20_000,
  requestsMax: 1024,
};

/** Bodies up to this length are held whole: one write to a socket, and a request that can be sent again. Longer ones stream. */
export const heldBytesMax = 1024 * 1024;

export interface InvocationRequest {
  /** What goes to the container: content-type, accept, custom attributes, ids. Lower-case names. */
  readonly headers: Readonly<Record<string, string>>;
  readonly targetModel: string | null;
  readonly targetVariant: string | null;
  /** Called once at most, when the container is ready for it; a Buffer can be sent twice. */
  readonly body: () => Promise<Buffer | Readable>;
  /** Of whoever asks; the answer's bytes are taken from it while they are held. */
  readonly memory: ByteLease;
  readonly receivedNs: number;
  readonly signal: AbortSignal;
}

export interface InvocationReply {
  readonly contentType: string | null;
  readonly customAttributes: string | null;
  readonly variantName: string;
  /** A stream has to be consumed or destroyed. */
  readonly body: Buffer | Readable;
  readonly byteLength: number | null;
  /** To be called once when the answer has been handed to the client, or was given up. */
  readonly done: () => void;
}

/** Who the sentence is about, and where its logs are. */
export interface InvocationPlace {
  readonly endpointName: string;
  readonly accountId: string;
  readonly region: string;
  /** Where a person reads a log group. */
  readonly logsLink: (group: string) => string;
  readonly logStreamArn: string;
}

/** The sentence of the managed service, word for word; clients and dashboards look for its parts. */
export function containerError(status: number, message: string, place: InvocationPlace): AwsError {
  const side = status >= 400 && status < 500 ? "client" : "server";
  const text =
    `Received ${side} error (${status}) from primary with message "${message}". ` +
    `See ${place.logsLink(`/aws/sagemaker/Endpoints/${place.endpointName}`)} ` +
    `in account ${place.accountId} for more information.`;
  return new AwsError("ModelError", text, {
    statusFallback: 424,
    members: { OriginalStatusCode: status, OriginalMessage: message, LogStreamArn: place.logStreamArn },
  });
}

export const timeoutText =
  "Your invocation timed out while waiting for a response from container primary. Review the latency metrics for each " +
  "container in Amazon CloudWatch, resolve the issue, and try again.";

export function endpointNotFound(name: string, accountId: string): AwsError {
  return new AwsError("ValidationError", `Endpoint ${name} of account ${accountId} not found.`);
}

/** The status is the code: clients of the managed service report `An error occurred (413)`. */
export function tooLong(limitBytes: number): AwsError {
  return new AwsError("413", `HTTP content length exceeded ${limitBytes} bytes.`, { statusFallback: 413 });
}

/** What a wait for a model of a multi-model endpoint failed with, in the service's words. */
export function modelErrorOf(thrown: unknown, dataUrl: string, place: InvocationPlace): unknown {
  if (thrown instanceof ModelMissingError) {
    const { bucket, key } = modelDataPlace(dataUrl, thrown.target);
    return new AwsError(
      "ValidationError",
      `Failed to download model data(bucket: ${bucket}, key: ${key}). Please ensure that there is an object located at ` +
        "the URL and that the role passed to CreateModel has permissions to download the model.",
      { cause: thrown },
    );
  }
  if (thrown instanceof ModelNotReadyError) {
    return new AwsError(
      "ModelNotReadyException",
      `The model is not ready for inference: ${thrown.reason}. Loading goes on; try the request again.`,
      { statusFallback: 429, cause: thrown },
    );
  }
  if (thrown instanceof InstanceFailure) {
    return containerError(503, `The container is not in service: ${thrown.message}`, place);
  }
  if (thrown instanceof ModelLoadError) return containerError(thrown.status, thrown.message, place);
  return thrown;
}
