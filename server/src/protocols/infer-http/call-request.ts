import { InferenceError } from "../../base/index.ts";
import type { ModelTarget, ServedModel } from "../../engine/index.ts";
import { deadlineFromNow, type InferenceRequest } from "../../inference/index.ts";
import type { IntegerRange } from "../../tensor/index.ts";
import { BodyError, type ContentType, type Exchange, type HttpLimits } from "../http-listener/index.ts";
import { readInferBody, type DecodedBody } from "./infer-body.ts";

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

/** The body of a call. Throws InferCallError or BodyError. */
export async function readCall(
  exchange: Exchange,
  request: CallRequest,
  { limits, integerRange }: { readonly limits: HttpLimits; readonly integerRange: IntegerRange },
): Promise<DecodedBody> {
  try {
    return await readInferBody(exchange, { limits, integerRange, ...request });
  } catch (error) {
    if (error instanceof BodyError) throw error;
    const plain = error instanceof InferenceError && plainBodyErrors.some((start) => error.message.startsWith(start));
    throw new InferCallError(InferenceError.from(error), plain ? "text/plain" : "application/json");
  }
}

/** What the engine said instead of an answer. */
export function callErrorOf(thrown: unknown): InferCallError {
  const error = InferenceError.from(thrown);
  return new InferCallError(error, isRequestError(error) ? "application/json" : "text/plain");
}

export function inferenceRequest(decoded: DecodedBody, target: ModelTarget, exchange: Exchange): InferenceRequest {
  const { header, tensors } = decoded;
  return {
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
    caller: null,
    trace: null,
    signal: exchange.signal,
  };
}

/** Errors about the body that Triton tells before it looks for JSON. */
const plainBodyErrors = ["nothing to be decompressed", "Decompressed data size", "failed to decompress"] as const;

/**
 * Whether Triton refused the request (reply of type application/json) rather than that its answer was an error
 * (text/plain): the checks of its core have these beginnings.
 */
export function isRequestError(error: InferenceError): boolean {
  return requestErrors.some((start) => error.message.startsWith(start));
}

const requestErrors = ["[request id: ", "unexpected inference input '", "unexpected inference output '"] as const;
