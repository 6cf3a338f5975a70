import { createHmac } from "node:crypto";
import type { Credential } from "./credential.ts";
import { headerText, signatureEquals } from "./signature.ts";
import {
  SignatureFailure,
  decodeComponent,
  pathOf,
  queryValue,
  rawQueryOf,
  type SignedRequest,
} from "./signed-request.ts";

type Find = (accessKeyId: string, sessionToken: string | undefined) => Credential;

/** Query parameters that SigV2 signs as part of the resource. */
const subresources = new Set(
  (
    "accelerate acl cors delete lifecycle location logging notification partNumber policy requestPayment restore tagging " +
    "torrent uploadId uploads versionId versioning versions website response-content-type response-content-language " +
    "response-expires response-cache-control response-content-disposition response-content-encoding"
  ).split(" "),
);

const skewMsMax = 15 * 60 * 1000;

/** Verifies a URL that boto3 has presigned for a custom endpoint: `AWSAccessKeyId`, `Signature`, `Expires`. */
export function verifyV2Query(request: SignedRequest, find: Find, nowMs: number): Credential {
  const expires = queryValue(request.url, "Expires") ?? "";
  if (!/^\d{1,15}$/.test(expires)) {
    throw new SignatureFailure(
      "malformed",
      "Query-string authentication requires the Signature, Expires and AWSAccessKeyId parameters",
    );
  }
  const token = queryValue(request.url, "x-amz-security-token");
  const credential = find(queryValue(request.url, "AWSAccessKeyId") ?? "", token);
  if (Number(expires) * 1000 < nowMs) throw new SignatureFailure("expired", "Request has expired");
  // A client that puts the session token into the query signs it like a header.
  const extra = token === undefined ? {} : { "x-amz-security-token": token };
  verify(request, {
    expires,
    extra,
    secret: credential.secretAccessKey,
    signature: queryValue(request.url, "Signature") ?? "",
  });
  return credential;
}

/** Verifies `Authorization: AWS key:signature`. */
export function verifyV2Header(request: SignedRequest, find: Find, nowMs: number): Credential {
  const match = /^AWS ([^:\s]+):(\S+)$/.exec(request.headers.authorization ?? "");
  if (match === null) throw new SignatureFailure("malformed", "Authorization header is not in the expected form.");
  const amzDate = headerText(request.headers, "x-amz-date");
  const signedMs = Date.parse(amzDate || headerText(request.headers, "date"));
  if (!(Math.abs(nowMs - signedMs) <= skewMsMax)) {
    throw new SignatureFailure("skewed", "The difference between the request time and the current time is too large.");
  }
  const credential = find(match[1] ?? "", headerText(request.headers, "x-amz-security-token"));
  const expires = amzDate === "" ? headerText(request.headers, "date") : "";
  verify(request, { expires, extra: {}, secret: credential.secretAccessKey, signature: match[2] ?? "" });
  return credential;
}

interface V2Signature {
  /** The value of the Date header or of the Expires parameter. */
  readonly expires: string;
  readonly extra: Readonly<Record<string, string>>;
  readonly secret: string;
  readonly signature: string;
}

function verify(request: SignedRequest, parts: V2Signature): void {
  const amz: Record<string, string> = { ...parts.extra };
  for (const name of Object.keys(request.headers)) {
    if (name.startsWith("x-amz-")) amz[name] = headerText(request.headers, name);
  }
  const headers = Object.keys(amz)
    .toSorted()
    .map((name) => `${name}:${amz[name]}\n`)
    .join("");
  const text = [
    request.method,
    headerText(request.headers, "content-md5"),
    headerText(request.headers, "content-type"),
    parts.expires,
    headers + canonicalResource(request.url),
  ].join("\n");
  if (!signatureEquals(createHmac("sha1", parts.secret).update(text, "utf8").digest("base64"), parts.signature)) {
    throw new SignatureFailure(
      "mismatch",
      "The request signature we calculated does not match the signature you provided. Check your key and signing method.",
    );
  }
}

function canonicalResource(url: string): string {
  const signed = rawQueryOf(url)
    .map(([name, value]) => [decodeComponent(name), decodeComponent(value)] as const)
    .filter(([name]) => subresources.has(name))
    .toSorted(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, value]) => (value === "" ? name : `${name}=${value}`));
  return signed.length === 0 ? pathOf(url) : `${pathOf(url)}?${signed.join("&")}`;
}
