import type { KeyObject } from "node:crypto";
import type { Clock } from "@galatea/base";
import { canonicalRequest, headerText, hmacSha256, signatureEquals, signingKey, stringToSign } from "./signature.ts";
import { parseBearerToken, bearerService, checkBearer } from "./bearer-token.ts";
import type { Credential } from "./credential.ts";
import {
  SignatureFailure,
  parseAuthorization,
  credentialScope,
  parseCredential,
  queryValue,
  type CredentialScope,
  type SignedRequest,
} from "./signed-request.ts";
import { verifyV2Header, verifyV2Query } from "./signature-v2.ts";

export type CredentialLookup = (accessKeyId: string) => Credential | undefined;

/** The part of the body that the signature covers, and its expected hash. The caller must verify the body with it. */
export type SignedPayload =
  | { readonly at: "unsigned" }
  | { readonly at: "sha256"; readonly hex: string }
  | { readonly at: "chunks"; readonly trailer: boolean; readonly chain: ChunkChain }
  | { readonly at: "unsigned-trailer" };

/**
 * State for verifying the chunk signatures of an aws-chunked body. Each chunk signature covers the previous signature;
 * the first one covers the request's signature (`seed`).
 */
export interface ChunkChain {
  readonly key: KeyObject;
  readonly timestamp: string;
  readonly scope: string;
  readonly seed: string;
}

export interface Authentication {
  readonly credential: Credential;
  readonly payload: SignedPayload;
}

/** An authenticated request, and the service for which the request was signed. */
interface Proven extends Authentication {
  readonly service: string;
}

const skewMsMax = 15 * 60 * 1000;
const signingKeysMax = 256;
const presignedSecondsMax = 7 * 24 * 3600;

/**
 * Verifies SigV4 signatures and S3's SigV2 signatures, in headers and in presigned queries. Throws SignatureFailure.
 */
export class Authenticator {
  readonly #lookup: CredentialLookup;
  readonly #clock: Clock;
  readonly #signingKeys = new Map<string, KeyObject>();

  constructor(lookup: CredentialLookup, clock: Clock) {
    this.#lookup = lookup;
    this.#clock = clock;
  }

  /**
   * Verifies a request. `bodySha256` is the hash of the buffered body. S3 passes null: the value of the header is used,
   * and S3 verifies the body against the returned payload while it streams. `service` is the called service's name in
   * credential scopes.
   */
  verify(request: SignedRequest, bodySha256: string | null, service: string): Authentication {
    const proven = this.#proven(request, bodySha256);
    // A request may contain several signatures. The access key that the gateway reads from the scope must be the
    // verified one.
    if (credentialScope(request)?.accessKeyId !== proven.credential.accessKeyId) {
      throw new SignatureFailure("malformed", "The request names more than one access key.");
    }
    checkService(proven, service);
    return proven;
  }

  #proven(request: SignedRequest, bodySha256: string | null): Proven {
    const authorization = request.headers.authorization;
    if (authorization?.startsWith("AWS4-HMAC-SHA256")) return this.#verifyHeader(request, bodySha256);
    if (queryValue(request.url, "X-Amz-Signature") !== undefined) return this.#verifyQuery(request, bodySha256);
    if (queryValue(request.url, "Signature") !== undefined) {
      return provenByV2(verifyV2Query(request, this.credential, this.#clock.epochMs()));
    }
    if (authorization?.startsWith("AWS ")) {
      return provenByV2(verifyV2Header(request, this.credential, this.#clock.epochMs()));
    }
    throw new SignatureFailure("missing", "Missing Authentication Token");
  }

  /** Verifies a request by the bearer token in its header. The token does not sign any other part of the request. */
  verifyBearer(authorization: string | undefined): Authentication {
    const presigned = parseBearerToken(authorization);
    if (presigned === null) throw new SignatureFailure("missing", "Missing Authentication Token");
    const proven = this.#verifyQuery(presigned, null);
    checkService(proven, bearerService);
    checkBearer(presigned);
    return proven;
  }

  /** Rejects a caller without a known access key, before any of the body is buffered. Does not verify the signature. */
  identify(request: SignedRequest): void {
    const scope = credentialScope(request);
    if (scope === null) throw new SignatureFailure("missing", "Missing Authentication Token");
    if (this.#lookup(scope.accessKeyId) === undefined) throw unknownKey();
  }

  /**
   * Returns the credential that signed a form policy, which is a document and not a request. Throws SignatureFailure.
   */
  readonly credential = (accessKeyId: string, sessionToken: string | undefined): Credential => {
    const credential = this.#lookup(accessKeyId);
    if (credential === undefined) throw unknownKey();
    if (credential.expiresMs !== null && credential.expiresMs <= this.#clock.epochMs()) {
      throw new SignatureFailure("expired", "The security token included in the request is expired");
    }
    if (credential.sessionToken !== null && !signatureEquals(credential.sessionToken, sessionToken ?? "")) {
      throw new SignatureFailure("bad-token", "The security token included in the request is invalid.");
    }
    return credential;
  };

  /**
   * Returns the signing key of a day, a region and a service, from a cache. It takes four hashes to compute and many
   * requests share it.
   */
  #signingKey(credential: Credential, scope: CredentialScope & { readonly date: string }): KeyObject {
    const name = [credential.secretAccessKey, scope.date, scope.region, scope.service].join("/");
    const known = this.#signingKeys.get(name);
    if (known !== undefined) return known;
    if (this.#signingKeys.size >= signingKeysMax) this.#signingKeys.clear();
    const created = signingKey(credential.secretAccessKey, scope.date, scope.region, scope.service);
    this.#signingKeys.set(name, created);
    return created;
  }

  #verifyHeader(request: SignedRequest, bodySha256: string | null): Proven {
    const header = parseAuthorization(request.headers.authorization);
    if (header === null) throw new SignatureFailure("malformed", "Authorization header is not in the expected form.");
    if (!header.signedHeaders.includes("host")) {
      throw new SignatureFailure("malformed", "'Host' must be a 'SignedHeader' in the AWS Authorization.");
    }
    const timestamp = headerText(request.headers, "x-amz-date");
    const signedMs = parseTimestamp(timestamp);
    if (Math.abs(this.#clock.epochMs() - signedMs) > skewMsMax) {
      throw new SignatureFailure(
        "skewed",
        "The difference between the request time and the current time is too large.",
      );
    }
    const credential = this.credential(header.accessKeyId, headerText(request.headers, "x-amz-security-token"));
    const declared = headerText(request.headers, "x-amz-content-sha256");
    const payloadHash = bodySha256 !== null && !isMode(declared) ? bodySha256 : declared;
    const canonical = canonicalRequest(request, {
      signedHeaders: header.signedHeaders,
      payloadHash,
      encodePathTwice: header.service !== "s3",
      omitQuery: null,
    });
    const key = this.#signingKey(credential, header);
    const scope = scopeText(header);
    const expected = hmacSha256(key, stringToSign(timestamp, scope, canonical)).toString("hex");
    if (!timestamp.startsWith(header.date) || !signatureEquals(expected, header.signature)) throw mismatch();
    checkHeaders(request, header.signedHeaders);
    const { service } = header;
    return { credential, service, payload: payloadOf(payloadHash, { key, timestamp, scope, seed: expected }) };
  }

  #verifyQuery(request: SignedRequest, bodySha256: string | null): Proven {
    const value = (name: string) => queryValue(request.url, `X-Amz-${name}`) ?? "";
    const scope = parseCredential(value("Credential"));
    const seconds = Number(value("Expires"));
    if (scope === null || value("Algorithm") !== "AWS4-HMAC-SHA256" || !Number.isInteger(seconds)) {
      throw new SignatureFailure("malformed", "Query-string authentication requires the X-Amz-* parameters.");
    }
    if (seconds < 0 || seconds > presignedSecondsMax) {
      throw new SignatureFailure("malformed", "X-Amz-Expires must be less than a week (in seconds)");
    }
    const timestamp = value("Date");
    const signedMs = parseTimestamp(timestamp);
    const nowMs = this.#clock.epochMs();
    if (nowMs > signedMs + seconds * 1000) throw new SignatureFailure("expired", "Request has expired");
    if (signedMs > nowMs + skewMsMax) throw new SignatureFailure("skewed", "Request is not valid yet");
    const credential = this.credential(scope.accessKeyId, value("Security-Token"));
    const declared = headerText(request.headers, "x-amz-content-sha256") || value("Content-Sha256");
    const payloadHash = bodySha256 !== null && !isMode(declared) ? bodySha256 : declared || "UNSIGNED-PAYLOAD";
    const signedHeaders = value("SignedHeaders").split(";");
    const canonical = canonicalRequest(request, {
      signedHeaders,
      payloadHash,
      encodePathTwice: scope.service !== "s3",
      omitQuery: "X-Amz-Signature",
    });
    const key = this.#signingKey(credential, scope);
    const expected = hmacSha256(key, stringToSign(timestamp, scopeText(scope), canonical)).toString("hex");
    if (!timestamp.startsWith(scope.date) || !signatureEquals(expected, value("Signature"))) throw mismatch();
    checkHeaders(request, signedHeaders);
    const chain = { key, timestamp, scope: scopeText(scope), seed: expected };
    return { credential, service: scope.service, payload: payloadOf(payloadHash, chain) };
  }
}

const provenByV2 = (credential: Credential): Proven => ({ credential, service: "s3", payload: { at: "unsigned" } });

/**
 * Rejects a signature for another service. Without this check, a request that was signed for one service could be
 * replayed to another, where it means something else.
 */
function checkService({ service }: Proven, expected: string): void {
  if (service === expected) return;
  throw new SignatureFailure("wrong-service", `Credential should be scoped to correct service: '${expected}'.`);
}

/** Header whose value is also a line of the signed text, and which need not be signed for that reason. */
const payloadHashHeader = "x-amz-content-sha256";

/**
 * Returns whether a header changes a request. SageMaker's headers name models, variants and inputs. Proxies add the
 * other `x-amzn-` headers, which change nothing.
 */
const changesRequest = (name: string) => name.startsWith("x-amz-") || name.startsWith("x-amzn-sagemaker-");

/**
 * Rejects headers that change the request and are not signed. Without this check, the holder of a presigned PUT could
 * copy any object to its key with `x-amz-copy-source`.
 */
function checkHeaders({ headers }: SignedRequest, signedHeaders: readonly string[]): void {
  const signed = new Set(signedHeaders.map((name) => name.toLowerCase()));
  const unsigned = Object.keys(headers).filter(
    (name) => changesRequest(name) && name !== payloadHashHeader && !signed.has(name),
  );
  if (unsigned.length === 0) return;
  const message = "There were headers present in the request which were not signed";
  throw new SignatureFailure("unsigned-headers", message, unsigned);
}

const scopeText = (scope: CredentialScope & { readonly date: string }) =>
  `${scope.date}/${scope.region}/${scope.service}/aws4_request`;

const isMode = (declared: string) => declared === "UNSIGNED-PAYLOAD" || declared.startsWith("STREAMING-");

function payloadOf(declared: string, chain: ChunkChain): SignedPayload {
  switch (declared) {
    case "UNSIGNED-PAYLOAD":
      return { at: "unsigned" };
    case "STREAMING-UNSIGNED-PAYLOAD-TRAILER":
      return { at: "unsigned-trailer" };
    case "STREAMING-AWS4-HMAC-SHA256-PAYLOAD":
      return { at: "chunks", trailer: false, chain };
    case "STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER":
      return { at: "chunks", trailer: true, chain };
    default:
      if (!/^[0-9a-f]{64}$/.test(declared)) {
        throw new SignatureFailure(
          "malformed",
          `The x-amz-content-sha256 '${declared.slice(0, 80)}' is not supported.`,
        );
      }
      return { at: "sha256", hex: declared };
  }
}

/** Parses `20260101T000000Z`. */
function parseTimestamp(text: string): number {
  const match = /^(\d{4})(\d{2})(\d{2})T(\d{2})(\d{2})(\d{2})Z$/.exec(text);
  if (match === null) throw new SignatureFailure("malformed", "AWS authentication requires a valid Date or x-amz-date");
  const [, year, month, day, hour, minute, second] = match;
  return Date.parse(`${year}-${month}-${day}T${hour}:${minute}:${second}Z`);
}

function unknownKey(): SignatureFailure {
  return new SignatureFailure("unknown-key", "The security token included in the request is invalid.");
}

function mismatch(): SignatureFailure {
  return new SignatureFailure(
    "mismatch",
    "The request signature we calculated does not match the signature you provided. Check your AWS Secret Access Key and signing method. Consult the service documentation for details.",
  );
}
