import { createHash } from "node:crypto";
import {
  parseCredential,
  queryValue,
  SignatureFailure,
  type CredentialScope,
  type SignedRequest,
} from "./signed-request.ts";

/**
 * Prefix of bearer tokens in the format of SageMaker's libraries, for clients that cannot sign requests. The token
 * contains a presigned request that is never sent.
 */
const tokenPrefix = "sagemaker-api-key-";
/** Appended after the signature, which therefore does not cover it. */
const version = "&Version=1";
/** The service in the credential scope of tokens. */
export const bearerService = "sagemaker";
const presignedHost = "sagemaker.amazonaws.com";
const secondsMax = 12 * 3600;
const emptySha256 = createHash("sha256").digest("hex");

/**
 * Returns the presigned request in a header's bearer token, not verified. Returns null for any other header and for an
 * invalid token.
 */
export function parseBearerToken(authorization: string | undefined): SignedRequest | null {
  const [, token] = /^Bearer +(\S+)$/i.exec(authorization ?? "") ?? [];
  if (token?.startsWith(tokenPrefix) !== true) return null;
  const presigned = Buffer.from(token.slice(tokenPrefix.length), "base64").toString("utf8");
  if (!presigned.startsWith(`${presignedHost}/?`) || !presigned.endsWith(version)) return null;
  const url = presigned.slice(presignedHost.length, -version.length);
  return { method: "POST", url, headers: { host: presignedHost, "x-amz-content-sha256": emptySha256 } };
}

/** Returns the credential scope in a token. Only Authenticator.verifyBearer verifies it. */
export function bearerScope(authorization: string | undefined): CredentialScope | null {
  const presigned = parseBearerToken(authorization);
  return presigned === null ? null : parseCredential(queryValue(presigned.url, "X-Amz-Credential"));
}

/** Checks the fields of a token other than its signature. Throws SignatureFailure. */
export function checkBearer({ url }: SignedRequest): void {
  const seconds = Number(queryValue(url, "X-Amz-Expires"));
  const isForCalls = queryValue(url, "Action") === "CallWithBearerToken";
  if (isForCalls && seconds <= secondsMax) return;
  throw new SignatureFailure(
    "malformed",
    "The bearer token is not one of SageMaker's, or is valid for longer than twelve hours.",
  );
}
