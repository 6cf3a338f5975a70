import type { IncomingHttpHeaders } from "node:http";

/** A request as it was received, without decoding, to sign or verify. */
export interface SignedRequest {
  readonly method: string;
  /** Path and query of the request line. */
  readonly url: string;
  readonly headers: IncomingHttpHeaders;
}

/** The signer that a request claims. Only Authenticator.verify verifies it. */
export interface CredentialScope {
  readonly accessKeyId: string;
  /** The region; empty in SigV2, which has no scope. */
  readonly region: string;
  readonly service: string;
}

export type SignatureFailureReason =
  | "missing"
  | "malformed"
  | "unknown-key"
  | "bad-token"
  | "mismatch"
  | "unsigned-headers"
  | "wrong-service"
  | "expired"
  | "skewed";

/** An invalid signature. Each protocol maps reasons to its codes and statuses. */
export class SignatureFailure extends Error {
  readonly reason: SignatureFailureReason;
  /** Names of the headers that must be signed and are not; empty for other reasons. */
  readonly unsignedHeaders: readonly string[];

  constructor(reason: SignatureFailureReason, message: string, unsignedHeaders: readonly string[] = []) {
    super(message);
    this.name = "SignatureFailure";
    this.reason = reason;
    this.unsignedHeaders = unsignedHeaders;
  }
}

export function pathOf(url: string): string {
  const at = url.indexOf("?");
  return at === -1 ? url : url.slice(0, at);
}

/** Returns the query's name and value pairs in order, still encoded. A name without `=` has the value "". */
export function rawQueryOf(url: string): (readonly [string, string])[] {
  const at = url.indexOf("?");
  if (at === -1) return [];
  const pairs: (readonly [string, string])[] = [];
  for (const segment of url.slice(at + 1).split("&")) {
    if (segment === "") continue;
    const equals = segment.indexOf("=");
    pairs.push(equals === -1 ? [segment, ""] : [segment.slice(0, equals), segment.slice(equals + 1)]);
  }
  return pairs;
}

/** Decodes a component. A malformed escape stays unchanged, and the signature then fails. */
export function decodeComponent(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

export function queryValue(url: string, name: string): string | undefined {
  for (const [key, value] of rawQueryOf(url)) if (decodeComponent(key) === name) return decodeComponent(value);
  return undefined;
}

export interface AuthorizationHeader extends CredentialScope {
  readonly date: string;
  readonly signedHeaders: readonly string[];
  readonly signature: string;
}

/**
 * Parses `AWS4-HMAC-SHA256 Credential=…/date/region/service/aws4_request, SignedHeaders=…, Signature=…`; null for other
 * headers.
 */
export function parseAuthorization(header: string | undefined): AuthorizationHeader | null {
  if (header === undefined || !header.startsWith("AWS4-HMAC-SHA256")) return null;
  const fields = new Map<string, string>();
  for (const field of header.slice("AWS4-HMAC-SHA256".length).split(",")) {
    const equals = field.indexOf("=");
    if (equals > 0) fields.set(field.slice(0, equals).trim(), field.slice(equals + 1).trim());
  }
  const scope = parseCredential(fields.get("Credential"));
  if (scope === null) return null;
  return {
    ...scope,
    signedHeaders: (fields.get("SignedHeaders") ?? "").split(";").filter((name) => name !== ""),
    signature: fields.get("Signature") ?? "",
  };
}

export function parseCredential(text: string | undefined): (CredentialScope & { readonly date: string }) | null {
  const segments = (text ?? "").split("/");
  // An access key may contain a slash, so the scope's four parts are counted from the end.
  const [date, region, service, terminator] = segments.slice(-4);
  const accessKeyId = segments.slice(0, -4).join("/");
  if (accessKeyId === "" || date === undefined || region === undefined || service === undefined) return null;
  return terminator === "aws4_request" ? { accessKeyId, date, region, service } : null;
}

/**
 * Returns the scope from the header, the presigned query, or a SigV2 signature, which only S3 accepts. Null: the
 * request is unsigned.
 */
export function credentialScope(request: SignedRequest): CredentialScope | null {
  const authorization = request.headers.authorization;
  const header = parseAuthorization(authorization);
  if (header !== null) return header;
  const presigned = parseCredential(queryValue(request.url, "X-Amz-Credential"));
  if (presigned !== null) return presigned;
  const legacyKey = queryValue(request.url, "AWSAccessKeyId");
  if (legacyKey !== undefined) return { accessKeyId: legacyKey, region: "", service: "s3" };
  const legacy = authorization === undefined ? null : /^AWS ([^:\s]+):/.exec(authorization);
  return legacy === null ? null : { accessKeyId: legacy[1] ?? "", region: "", service: "s3" };
}
