import type { Credential } from "./credential.ts";
import { canonicalRequest, hmacSha256, sha256Hex, signingKey, stringToSign } from "./signature.ts";

export interface RequestToSign {
  readonly method: string;
  readonly url: URL;
  readonly body: string;
  /** Headers to sign in addition to `Host` and the date, by their names in lower case. */
  readonly headers?: Readonly<Record<string, string>>;
  readonly region: string;
  /** The service's name in the credential scope. */
  readonly service: string;
  readonly timeMs: number;
}

/**
 * Returns the headers of a signed request: the given headers, the date and the signature. The signature covers `Host`,
 * from the URL.
 */
export function signRequestHeaders(
  { method, url, body, region, service, timeMs, headers = {} }: RequestToSign,
  { accessKeyId, secretAccessKey }: Pick<Credential, "accessKeyId" | "secretAccessKey">,
): Readonly<Record<string, string>> {
  const timestamp = new Date(timeMs).toISOString().replaceAll(/[-:]|\.\d{3}/g, "");
  const date = timestamp.slice(0, 8);
  const scope = `${date}/${region}/${service}/aws4_request`;
  const signed = { ...headers, host: url.host, "x-amz-date": timestamp };
  const names = Object.keys(signed).toSorted();
  const canonical = canonicalRequest(
    { method, url: `${url.pathname}${url.search}`, headers: signed },
    { signedHeaders: names, payloadHash: sha256Hex(body), encodePathTwice: service !== "s3", omitQuery: null },
  );
  const key = signingKey(secretAccessKey, date, region, service);
  const signature = hmacSha256(key, stringToSign(timestamp, scope, canonical)).toString("hex");
  return {
    ...headers,
    "x-amz-date": timestamp,
    authorization: `AWS4-HMAC-SHA256 Credential=${accessKeyId}/${scope}, SignedHeaders=${names.join(";")}, Signature=${signature}`,
  };
}
