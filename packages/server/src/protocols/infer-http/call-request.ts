import { InferenceError } from "@galatea/base";
import type { ModelTarget, ServedModel } from "../../engine/index.ts";
import { deadlineFromNow, newInferenceRequest, type InferenceRequest } from "../../inference/index.ts";
import { BodyError, type ContentType, type Exchange } from "../http-listener/index.ts";
import type { DecodedBody } from "./infer-body.ts";

/** What is known of a call when its line and headers have been judged. */
export interface CallRequest {
  readonly target: ModelTarget;
  /** The model of the target, held by the caller until this call has been answered. */
  readonly model: ServedModel;
  /** Length of the JSON header; null: the whole body is JSON; 0: there is none, the body is the only input. */
  readonly headerBytes: number | null;
  readonly compressed: boolean;
}

/** What went wrong with an inference, and under which content type Triton says so. */
export class InferCallError extends Error {
  readonly error: InferenceError;
  readonly contentType: ContentType;

  constructor(error: InferenceError, contentType: ContentType) {
    super(error.message, { cause: error });
    this.error = error;
    this.contentType = contentType;
  }
}

/** An InferCallError or BodyError for what `readInferBody` threw. */
export function bodyErrorOf(thrown: unknown): InferCallError | BodyError {
  if (thrown instanceof BodyError) return thrown;
  const error = InferenceError.from(thrown);
  // Triton tells these before it looks for JSON.
  return new InferCallError(error, error.reason === "inflation-failed" ? "text/plain" : "application/json");
}

/** What the engine said instead of an answer: Triton types what its core refused as JSON, what its models said as text. */
export function callErrorOf(thrown: unknown): InferCallError {
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
