import { InferenceError } from "@galatea/base";
import type { ModelTarget, ServedModel } from "../../engine/index.ts";
import { deadlineFromNow, newInferenceRequest, type InferenceRequest } from "../../inference/index.ts";
import { BodyError, type ContentType, type Exchange } from "../http-listener/index.ts";
import type { DecodedBody } from "./infer-body.ts";

/** A call whose request line and headers are valid. */
export interface CallRequest {
  readonly target: ModelTarget;
  /** The leased model. The caller ends the lease after this call. */
  readonly model: ServedModel;
  /** Length of the JSON header. Null if the whole body is JSON. 0 if the body has no header and is the only input. */
  readonly headerBytes: number | null;
  readonly compressed: boolean;
}

/** An error of an inference, with the content type in which Triton reports it. */
export class InferCallError extends Error {
  readonly error: InferenceError;
  readonly contentType: ContentType;

  constructor(error: InferenceError, contentType: ContentType) {
    super(error.message, { cause: error });
    this.error = error;
    this.contentType = contentType;
  }
}

/** Converts an exception of `readInferBody` to the error that is sent. */
export function toBodyError(thrown: unknown): InferCallError | BodyError {
  if (thrown instanceof BodyError) return thrown;
  const error = InferenceError.from(thrown);
  // Triton decompresses the body before it parses JSON, and reports an error of the decompression as text.
  return new InferCallError(error, error.reason === "inflation-failed" ? "text/plain" : "application/json");
}

/** Converts an error of the engine. As in Triton, errors of the engine itself are sent as JSON and errors of models as text. */
export function toCallError(thrown: unknown): InferCallError {
  const error = InferenceError.from(thrown);
  return new InferCallError(error, error.reason === "request-refused" ? "application/json" : "text/plain");
}

export function inferenceRequest(decoded: DecodedBody, target: ModelTarget, exchange: Exchange): InferenceRequest {
  const { header, tensors } = decoded;
  return newInferenceRequest({
    id: header.id,
    namespace: target.namespace,
    modelName: target.modelName,
    modelVersion: target.modelVersion,
    inputs: tensors,
    requestedOutputs: header.outputs === null ? null : header.outputs.map((output) => output.name),
    parameters: header.parameters,
    sequence: header.sequence,
    priority: header.priority,
    queueTimeoutUs: header.queueTimeoutUs,
    receivedNs: exchange.receivedNs,
    deadlineNs: deadlineFromNow(exchange.clock, header.queueTimeoutUs),
    executionMsMax: exchange.executionMsMax,
    signal: exchange.signal,
  });
}
