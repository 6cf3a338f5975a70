import { AwsError, diskFaultOf, describeDiskFault } from "@galatea/base";
import { SignatureFailure, type SignatureFailureReason } from "../signing/index.ts";
import type { ErrorModel, ServiceModel } from "../spec/index.ts";
import type { OperationProtocol } from "./service-table.ts";
import type { ValidationCodes } from "./service-row.ts";

/** The error shapes and validation codes of a service. */
export interface ServiceErrors {
  readonly model: ServiceModel;
  readonly validationCodes: ValidationCodes;
}

/** An error with the names and status that a protocol sends. */
export interface WireError {
  /** The shape's name, or the code if no model lists it. */
  readonly type: string;
  /** The code for clients of the query protocol and of query-compatible services. */
  readonly code: string;
  readonly status: number;
  readonly fault: boolean;
  readonly message: string;
  readonly members: Readonly<Record<string, unknown>>;
}

export const signatureCodes: Readonly<Record<SignatureFailureReason, readonly [json: string, query: string]>> = {
  missing: ["MissingAuthenticationTokenException", "MissingAuthenticationToken"],
  malformed: ["IncompleteSignatureException", "IncompleteSignature"],
  "unknown-key": ["UnrecognizedClientException", "InvalidClientTokenId"],
  "bad-token": ["UnrecognizedClientException", "InvalidClientTokenId"],
  mismatch: ["InvalidSignatureException", "SignatureDoesNotMatch"],
  "unsigned-headers": ["InvalidSignatureException", "SignatureDoesNotMatch"],
  "wrong-service": ["InvalidSignatureException", "SignatureDoesNotMatch"],
  expired: ["ExpiredTokenException", "ExpiredToken"],
  skewed: ["InvalidSignatureException", "SignatureDoesNotMatch"],
};

/**
 * Converts a thrown value to an AwsError. A database that cannot be reached becomes ServiceUnavailable. Any other value
 * that is not an AwsError or an invalid signature is a bug and becomes InternalFailure.
 */
export function toAwsError(thrown: unknown, protocol: OperationProtocol | "rest-json"): AwsError {
  if (thrown instanceof AwsError) return thrown;
  if (!(thrown instanceof SignatureFailure)) {
    // Clients retry ServiceUnavailable.
    const isAway = diskFaultOf(thrown) === "unreachable";
    const [code, statusFallback] = isAway
      ? (["ServiceUnavailable", 503] as const)
      : (["InternalFailure", 500] as const);
    return new AwsError(code, internalText(thrown), { cause: thrown, statusFallback });
  }
  const [json, query] = signatureCodes[thrown.reason];
  const statusFallback = thrown.reason === "malformed" ? 400 : 403;
  const unsigned = thrown.unsignedHeaders.length > 0 ? `: ${thrown.unsignedHeaders.join(", ")}` : "";
  const message = `${thrown.message}${unsigned}`;
  return new AwsError(protocol === "query" ? query : json, message, { cause: thrown, statusFallback });
}

/**
 * Returns the client's text for an internal error. It names a fault of the disk (full, read-only, not permitted) or of
 * the database. All other details are only in the log.
 */
function internalText(thrown: unknown): string {
  const fault = diskFaultOf(thrown);
  if (fault === null) return "An internal error occurred; the server's log has the details.";
  const text = describeDiskFault(fault, "the platform's data");
  return `${text.charAt(0).toUpperCase()}${text.slice(1)}`;
}

/**
 * Returns an error with the status, code and shape name that the service's model defines for it. The error's code may
 * be a code or a shape name.
 */
export function wireError(words: ServiceErrors | null, error: AwsError): WireError {
  const [type, found] = modelled(words?.model ?? null, error.code);
  const status = found?.status ?? (found?.fault === true ? 500 : error.statusFallback);
  const isValidation = words !== null && error.code === words.validationCodes.json;
  const code = found?.code ?? (isValidation ? words.validationCodes.query : error.code);
  return { type, code, status, fault: status >= 500, message: error.message, members: error.members };
}

function modelled(model: ServiceModel | null, code: string): [string, ErrorModel | undefined] {
  const errors = model?.errors ?? {};
  // A shape whose name equals the code has priority over shapes that declare the code.
  if (Object.hasOwn(errors, code)) return [code, errors[code]];
  for (const [shape, error] of Object.entries(errors)) if (error.code === code) return [shape, error];
  return [code, undefined];
}

/** Returns the error's document. The shape decides whether the member with the message is `message` or `Message`. */
export function errorDocument(model: ServiceModel | null, error: WireError): Record<string, unknown> {
  const shape = model?.shapes[error.type];
  const members = shape?.type === "structure" ? Object.keys(shape.members) : [];
  const messageName = members.find((name) => name.toLowerCase() === "message") ?? "message";
  return { __type: error.type, ...error.members, [messageName]: error.message };
}
