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

/** An error in a protocol. */
export interface WireError {
  /** The shape's name, or the code if no model lists it. */
  readonly type: string;
  /** The code for query clients and query-compatible services. */
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
 * Converts a thrown value. A database that cannot be reached is reported as ServiceUnavailable; anything else but an
 * AwsError or an invalid signature is a bug, reported as InternalFailure.
 */
export function toAwsError(thrown: unknown, protocol: OperationProtocol | "rest-json"): AwsError {
  if (thrown instanceof AwsError) return thrown;
  if (!(thrown instanceof SignatureFailure)) {
    // A code that clients retry.
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

/** Returns the client's text for an internal error. Faults of the disk (full, read-only, not permitted) and of the database are named; other details are only in the log. */
function internalText(thrown: unknown): string {
  const fault = diskFaultOf(thrown);
  if (fault === null) return "An internal error occurred; the server's log has the details.";
  const text = describeDiskFault(fault, "the platform's data");
  return `${text.charAt(0).toUpperCase()}${text.slice(1)}`;
}

/** Finds the error in the service's model, by code or by shape name, for its status and both of its names. */
export function wireError(words: ServiceErrors | null, error: AwsError): WireError {
  const [type, found] = modelled(words?.model ?? null, error.code);
  const status = found?.status ?? (found?.fault === true ? 500 : error.statusFallback);
  const isValidation = words !== null && error.code === words.validationCodes.json;
  const code = found?.code ?? (isValidation ? words.validationCodes.query : error.code);
  return { type, code, status, fault: status >= 500, message: error.message, members: error.members };
}

function modelled(model: ServiceModel | null, code: string): [string, ErrorModel | undefined] {
  const errors = model?.errors ?? {};
  // If two shapes have one code, the shape with that name is used.
  if (Object.hasOwn(errors, code)) return [code, errors[code]];
  for (const [shape, error] of Object.entries(errors)) if (error.code === code) return [shape, error];
  return [code, undefined];
}

/** Returns the error's document; the message's member is `message` or `Message`, by its shape. */
export function errorDocument(model: ServiceModel | null, error: WireError): Record<string, unknown> {
  const shape = model?.shapes[error.type];
  const members = shape?.type === "structure" ? Object.keys(shape.members) : [];
  const messageName = members.find((name) => name.toLowerCase() === "message") ?? "message";
  return { __type: error.type, ...error.members, [messageName]: error.message };
}
