import { AwsError, diskFault, diskText } from "@galatea/base";
import { SignatureFailure, type SignatureFailureReason } from "../signing/index.ts";
import type { ErrorModel, ServiceModel } from "../spec/index.ts";
import type { OperationProtocol } from "./service-table.ts";
import type { ValidationCodes } from "./service-row.ts";

/** What a service says of its errors. */
export interface ErrorWords {
  readonly model: ServiceModel;
  readonly validationCodes: ValidationCodes;
}

/** An error as a protocol tells it. */
export interface WireError {
  /** The shape's name, or the code where no model lists it. */
  readonly type: string;
  /** The code that query clients and query-compatible services know. */
  readonly code: string;
  readonly status: number;
  readonly fault: boolean;
  readonly message: string;
  readonly members: Readonly<Record<string, unknown>>;
}

const signatureCodes: Readonly<Record<SignatureFailureReason, readonly [json: string, query: string]>> = {
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

/** Anything that is neither an AwsError nor a refused signature is a bug, told as InternalFailure. */
export function asAwsError(thrown: unknown, protocol: OperationProtocol | "rest-json"): AwsError {
  if (thrown instanceof AwsError) return thrown;
  if (!(thrown instanceof SignatureFailure)) {
    return new AwsError("InternalFailure", internalText(thrown), { cause: thrown, statusFallback: 500 });
  }
  const [json, query] = signatureCodes[thrown.reason];
  const statusFallback = thrown.reason === "malformed" ? 400 : 403;
  const unsigned = thrown.unsignedHeaders.length > 0 ? `: ${thrown.unsignedHeaders.join(", ")}` : "";
  const message = `${thrown.message}${unsigned}`;
  return new AwsError(protocol === "query" ? query : json, message, { cause: thrown, statusFallback });
}

/** A disk that takes no more is no secret and no bug; of all else the log has the details. */
function internalText(thrown: unknown): string {
  const fault = diskFault(thrown);
  if (fault === null) return "An internal error occurred; the server's log has the details.";
  const text = diskText(fault, "the platform's data");
  return `${text.charAt(0).toUpperCase()}${text.slice(1)}`;
}

/** Finds the error in the service's model, by code or by shape name, for its status and both of its names. */
export function wireError(words: ErrorWords | null, error: AwsError): WireError {
  const [type, found] = modelled(words?.model ?? null, error.code);
  const status = found?.status ?? (found?.fault === true ? 500 : error.statusFallback);
  const isValidation = words !== null && error.code === words.validationCodes.json;
  const code = found?.code ?? (isValidation ? words.validationCodes.query : error.code);
  return { type, code, status, fault: status >= 500, message: error.message, members: error.members };
}

function modelled(model: ServiceModel | null, code: string): [string, ErrorModel | undefined] {
  const errors = model?.errors ?? {};
  // Two shapes may have one code: that of the name is meant.
  if (Object.hasOwn(errors, code)) return [code, errors[code]];
  for (const [shape, error] of Object.entries(errors)) if (error.code === code) return [shape, error];
  return [code, undefined];
}

/** The member that carries the message is `message` or `Message`, as the shape says. */
export function errorDocument(model: ServiceModel | null, error: WireError): Record<string, unknown> {
  const shape = model?.shapes[error.type];
  const members = shape?.type === "structure" ? Object.keys(shape.members) : [];
  const messageName = members.find((name) => name.toLowerCase() === "message") ?? "message";
  return { __type: error.type, ...error.members, [messageName]: error.message };
}
