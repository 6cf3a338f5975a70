import { InferenceError } from "@galatea/base";
import type { InferenceRequest } from "../inference/index.ts";

/** Returns the prefix with the request id that begins most messages of Triton's core. */
export function requestPrefix(request: InferenceRequest): string {
  return `[request id: ${request.id === "" ? "<id_unknown>" : request.id}] `;
}

export function queueFullError(request: InferenceRequest): InferenceError {
  return refused(`${requestPrefix(request)}Exceeds maximum queue size`);
}

export function schedulerStoppingError(request: InferenceRequest): InferenceError {
  const text = "Server is stopping, scheduler for model has stopped accepting new inference requests";
  return refused(`${requestPrefix(request)}${text}`);
}

function refused(message: string): InferenceError {
  return new InferenceError("UNAVAILABLE", message, { reason: "request-refused" });
}

/** Returns the error of a request that waited too long. As in Triton, it has no prefix. */
export function queueTimeoutError(): InferenceError {
  return new InferenceError("UNAVAILABLE", "Request timeout expired");
}

export function requestCancelled(request: InferenceRequest): InferenceError {
  return new InferenceError(
    "CANCELLED",
    `${requestPrefix(request)}Request for model '${request.modelName}' was cancelled`,
  );
}
