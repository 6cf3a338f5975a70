import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { test } from "node:test";
import { systemClock } from "@galatea/base";
import { Authenticator } from "./authenticator.ts";
import { canonicalRequest, hmacSha256, sha256Hex, signingKey, stringToSign } from "./signature.ts";
import type { SignedRequest } from "./signed-request.ts";

const credential = {
  accessKeyId: "AKIDEXAMPLE",
  secretAccessKey: "secret",
  sessionToken: null,
  accountId: "1",
  expiresMs: null,
};
const now = "20261122T234000Z";
const authenticator = new Authenticator((id) => (id === credential.accessKeyId ? credential : undefined), {
  ...systemClock,
  epochMs: () => Date.parse("2026-11-22T23:40:00Z"),
});
const emptyHash = sha256Hex("");
const reason = (expected: string) => (error: unknown) => (error as { reason?: string }).reason === expected;

interface Signing {
  readonly request: SignedRequest;
  readonly names: readonly string[];
  readonly service: string;
}

function signatureOf({ request, names, service }: Signing, payloadHash: string): string {
  const options = { signedHeaders: names, payloadHash, encodePathTwice: service !== "s3", omitQuery: null };
  const key = signingKey(credential.secretAccessKey, "20261122", "us-east-1", service);
  const scope = `20261122/us-east-1/${service}/aws4_request`;
  return hmacSha256(key, stringToSign(now, scope, canonicalRequest(request, options))).toString("hex");
}

/** Returns a request with the signature in its headers. The signature covers the headers `names`. */
function byHeader(more: Record<string, string>, names: readonly string[], service = "s3"): SignedRequest {
  const headers = { host: "h", "x-amz-date": now, "x-amz-content-sha256": emptyHash, ...more };
  const request = { method: "PUT", url: "/bucket/key", headers };
  const signature = signatureOf({ request, names, service }, emptyHash);
  const credentialText = `${credential.accessKeyId}/20261122/us-east-1/${service}/aws4_request`;
  const authorization = `AWS4-HMAC-SHA256 Credential=${credentialText}, SignedHeaders=${names.join(";")}, Signature=${signature}`;
  return { ...request, headers: { ...headers, authorization } };
}

/** Returns a request with the signature in its query. */
function byQuery(
  more: Record<string, string>,
  names: readonly string[],
  service = "s3",
  payloadHash = "UNSIGNED-PAYLOAD",
): SignedRequest {
  const query = new URLSearchParams({
    "X-Amz-Algorithm": "AWS4-HMAC-SHA256",
    "X-Amz-Credential": `${credential.accessKeyId}/20261122/us-east-1/${service}/aws4_request`,
    "X-Amz-Date": now,
    "X-Amz-Expires": "900",
    "X-Amz-SignedHeaders": names.join(";"),
  });
  const request = { method: "PUT", url: `/bucket/key?${query.toString()}`, headers: { host: "h", ...more } };
  const signature = signatureOf({ request, names, service }, payloadHash);
  return { ...request, url: `${request.url}&X-Amz-Signature=${signature}` };
}

const forms = [
  ["header", byHeader, ["host", "x-amz-date"]],
  ["query", byQuery, ["host"]],
] as const;
const obeyed = [
  "x-amz-copy-source",
  "x-amz-tagging",
  "x-amz-meta-owner",
  "x-amz-target",
  "x-amz-acl",
  "x-amz-expected-bucket-owner",
  "x-amzn-sagemaker-target-model",
  "x-amzn-sagemaker-inputlocation",
];

for (const [form, sign, base] of forms) {
  test(`a request signed in its ${form} is accepted without other headers, and with the headers that it signs`, () => {
    assert.equal(authenticator.verify(sign({}, base), null, "s3").credential, credential);
    for (const name of obeyed)
      authenticator.verify(sign({ [name]: "/bucket/any" }, [...base, name].toSorted()), null, "s3");
    authenticator.verify(sign({ "content-type": "text/plain", "x-amzn-trace-id": "Root=1" }, base), null, "s3");
  });

  test(`a header that changes the operation and is not signed is rejected, signature in the ${form}`, () => {
    for (const name of obeyed) {
      assert.throws(() => authenticator.verify(sign({ [name]: "/bucket/any" }, base), null, "s3"), {
        reason: "unsigned-headers",
        unsignedHeaders: [name],
      });
    }
    const two = sign({ "x-amz-acl": "private", "x-amz-tagging": "a=b" }, [...base, "x-amz-acl"].toSorted());
    assert.throws(() => authenticator.verify(two, null, "s3"), { unsignedHeaders: ["x-amz-tagging"] });
  });

  test(`a signature for one service is invalid for another, in the ${form}`, () => {
    for (const [signed, responses] of [
      ["s3", "sagemaker"],
      ["monitoring", "sagemaker"],
      ["sagemaker", "s3"],
      ["sagemaker", "logs"],
    ] as const) {
      const request = sign({}, base, signed);
      authenticator.verify(request, null, signed);
      assert.throws(() => authenticator.verify(request, null, responses), reason("wrong-service"));
    }
  });
}

test("a presigned request of a service that buffers its body is accepted with the signed body only", () => {
  const signed = sha256Hex("signed body");
  for (const more of [{}, { "x-amz-content-sha256": signed }]) {
    const request = byQuery(more, ["host"], "sagemaker", signed);
    authenticator.verify(request, signed, "sagemaker");
    assert.throws(() => authenticator.verify(request, sha256Hex("other body"), "sagemaker"), reason("mismatch"));
  }
  const ofAny = byQuery({ "x-amz-content-sha256": "UNSIGNED-PAYLOAD" }, ["host"], "sagemaker");
  authenticator.verify(ofAny, sha256Hex("other body"), "sagemaker");
});

test("a version 2 signature is accepted by S3 only, whatever unsigned query parameters say", () => {
  const expires = String(Date.parse("2026-11-22T23:50:00Z") / 1000);
  const text = `POST\n\n\n${expires}\n/endpoints/e/invocations`;
  const signature = createHmac("sha1", credential.secretAccessKey).update(text).digest("base64");
  const query = new URLSearchParams({ AWSAccessKeyId: credential.accessKeyId, Expires: expires, Signature: signature });
  const url = `/endpoints/e/invocations?${query.toString()}`;
  const headers = { host: "h" };
  authenticator.verify({ method: "POST", url, headers }, null, "s3");
  const claimed = encodeURIComponent(`${credential.accessKeyId}/20261122/us-east-1/sagemaker/aws4_request`);
  const confused = { method: "POST", url: `${url}&X-Amz-Credential=${claimed}`, headers };
  assert.throws(() => authenticator.verify(confused, null, "sagemaker"), reason("wrong-service"));
});

test("a version 2 signature must cover every x-amz header", () => {
  const expires = String(Date.parse("2026-11-22T23:50:00Z") / 1000);
  const signature = createHmac("sha1", credential.secretAccessKey).update(`PUT\n\n\n${expires}\n/b/k`).digest("base64");
  const query = new URLSearchParams({ AWSAccessKeyId: credential.accessKeyId, Expires: expires, Signature: signature });
  const request = {
    method: "PUT",
    url: `/b/k?${query.toString()}`,
    headers: { host: "h", "x-amz-copy-source": "/b/any" },
  };
  assert.throws(() => authenticator.verify(request, null, "s3"), reason("mismatch"));
});
