import type { AwsError } from "@galatea/base";
import { SignatureFailure } from "../../signing/index.ts";
import { toAwsError } from "../../wire/index.ts";

/** An error in the format of OpenAI's API. */
export interface OpenAiError {
  readonly status: number;
  readonly document: { readonly error: unknown };
}

const bodyOf = (message: string, type: string, code: string | null) => ({
  error: { message, type, param: null, code },
});

/** The error code for an unknown model. */
export const modelNotFound = "model_not_found";

/**
 * Converts an error to the format of OpenAI's API. An error response of the container keeps its document and status.
 */
export function openAiError(thrown: unknown): OpenAiError {
  if (thrown instanceof SignatureFailure) {
    return { status: 401, document: bodyOf(thrown.message, "authentication_error", "invalid_api_key") };
  }
  const error = toAwsError(thrown, "rest-json");
  if (error.code === "ModelError") return ofModel(error);
  const status = error.code === modelNotFound ? 404 : error.statusFallback;
  const type = status >= 500 ? "server_error" : status === 403 ? "permission_error" : "invalid_request_error";
  return { status, document: bodyOf(error.message, type, error.code) };
}

function ofModel({ message, members }: AwsError): OpenAiError {
  const { OriginalStatusCode: reported, OriginalMessage: text } = members;
  // If the container has not responded in time, there is no status.
  const status = typeof reported === "number" && reported >= 400 && reported <= 599 ? reported : 504;
  const own = typeof text === "string" ? parsedError(text) : null;
  if (own !== null) return { status, document: own };
  return { status, document: bodyOf(message, status >= 500 ? "server_error" : "invalid_request_error", "model_error") };
}

function parsedError(text: string): OpenAiError["document"] | null {
  try {
    const parsed: unknown = JSON.parse(text);
    if (typeof parsed !== "object" || parsed === null || !("error" in parsed)) return null;
    // Clients expect an object with a `message`.
    return typeof parsed.error === "object" && parsed.error !== null ? { error: parsed.error } : null;
  } catch {
    return null;
  }
}
