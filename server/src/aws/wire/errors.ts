import { AwsError } from "../../base/index.ts";
import type { SignatureFailure, SignatureFailureReason } from "../../signing/index.ts";
import type { ErrorModel, ServiceModel } from "../spec/index.ts";
import type { WireProtocol } from "./detect.ts";

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

/** The code a service gives to inputs that fail its model's constraints: [JSON type, query code]. */
const validationCodes: Readonly<Record<string, readonly [string, string]>> = {
  sagemaker: ["ValidationException", "ValidationException"],
  "sagemaker-runtime": ["ValidationError", "ValidationError"],
  cloudwatch: ["ValidationException", "ValidationError"],
  logs: ["InvalidParameterException", "InvalidParameterException"],
  sts: ["ValidationError", "ValidationError"],
  iam: ["ValidationError", "ValidationError"],
};

export const validationCode = (service: string, protocol: WireProtocol): string =>
  (validationCodes[service] ?? ["ValidationException", "ValidationError"])[protocol === "query" ? 1 : 0] ?? "";

const signatureCodes: Readonly<Record<SignatureFailureReason, readonly [json: string, query: string]>> = {
  missing: ["MissingAuthenticationTokenException", "MissingAuthenticationToken"],
  malformed: ["IncompleteSignatureException", "IncompleteSignature"],
  "unknown-key": ["UnrecognizedClientException", "InvalidClientTokenId"],
  "bad-token": ["UnrecognizedClientException", "InvalidClientTokenId"],
  mismatch: ["InvalidSignatureException", "SignatureDoesNotMatch"],
  expired: ["ExpiredTokenException", "ExpiredToken"],
  skewed: ["InvalidSignatureException", "SignatureDoesNotMatch"],
};

export function signatureError(failure: SignatureFailure, protocol: WireProtocol): AwsError {
  const [json, query] = signatureCodes[failure.reason];
  const statusFallback = failure.reason === "malformed" ? 400 : 403;
  return new AwsError(protocol === "query" ? query : json, failure.message, { cause: failure, statusFallback });
}

/** Finds the error in the service's model, by code or by shape name, for its status and both of its names. */
export function wireError(model: ServiceModel | null, error: AwsError): WireError {
  const [type, found] = modelled(model, error.code);
  const status = found?.status ?? (found?.fault === true ? 500 : error.statusFallback);
  const [, legacyValidation] = validationCodes[model?.service ?? ""] ?? [];
  const isValidation = error.code === validationCodes[model?.service ?? ""]?.[0];
  const code = found?.code ?? (isValidation ? legacyValidation : undefined) ?? error.code;
  return { type, code, status, fault: status >= 500, message: error.message, members: error.members };
}

function modelled(model: ServiceModel | null, code: string): [string, ErrorModel | undefined] {
  const errors = model?.errors ?? {};
  for (const [shape, error] of Object.entries(errors)) if (error.code === code) return [shape, error];
  return [code, Object.hasOwn(errors, code) ? errors[code] : undefined];
}

/** The member that carries the message is `message` or `Message`, as the shape says. */
export function errorDocument(model: ServiceModel | null, error: WireError): Record<string, unknown> {
  const shape = model?.shapes[error.type];
  const members = shape?.type === "structure" ? Object.keys(shape.members) : [];
  const messageName = members.find((name) => name.toLowerCase() === "message") ?? "message";
  return { ...error.members, [messageName]: error.message };
}
