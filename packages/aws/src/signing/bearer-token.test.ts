import assert from "node:assert/strict";
import { test } from "node:test";
import { systemClock } from "@galatea/base";
import { Authenticator } from "./authenticator.ts";

// The token that sagemaker-core 2.27.0 creates with these keys at 2026-11-22T23:40:00Z in eu-west-1.
const token =
  "sagemaker-api-key-c2FnZW1ha2VyLmFtYXpvbmF3cy5jb20vP0FjdGlvbj1DYWxsV2l0aEJlYXJlclRva2VuJlgtQW16LUFsZ29yaXRobT1BV1M0LUhNQUMtU0hBMjU2JlgtQW16LUNyZWRlbnRpYWw9QUtJREVYQU1QTEUlMkYyMDI2MTEyMiUyRmV1LXdlc3QtMSUyRnNhZ2VtYWtlciUyRmF3czRfcmVxdWVzdCZYLUFtei1EYXRlPTIwMjYxMTIyVDIzNDAwMFomWC1BbXotRXhwaXJlcz00MzIwMCZYLUFtei1TaWduZWRIZWFkZXJzPWhvc3QmWC1BbXotU2lnbmF0dXJlPTE5ODEzMGRiMDgwNmRmMjZmM2VkYmE3MWRmNzY4Y2E4ZDY0NzBkZTNjNTYxYTJkNjUxYjU2NTNiZTYzM2M3YTEmVmVyc2lvbj0x";
const madeMs = Date.parse("2026-11-22T23:40:00Z");
const credential = {
  accessKeyId: "AKIDEXAMPLE",
  secretAccessKey: "secret",
  sessionToken: null,
  accountId: "1",
  expiresMs: null,
};
const at = (epochMs: number) =>
  new Authenticator((id) => (id === credential.accessKeyId ? credential : undefined), {
    ...systemClock,
    epochMs: () => epochMs,
  });
const reason = (expected: string) => (error: unknown) => (error as { reason?: string }).reason === expected;

test("a bearer token made by the SageMaker SDK is accepted for twelve hours", () => {
  const proven = at(madeMs).verifyBearer(`Bearer ${token}`);
  assert.equal(proven.credential.accessKeyId, "AKIDEXAMPLE");
  at(madeMs + 12 * 3_600_000 - 1000).verifyBearer(`Bearer ${token}`);
  assert.throws(() => at(madeMs + 12 * 3_600_000 + 1000).verifyBearer(`Bearer ${token}`), reason("expired"));
});

test("a token that was changed, is for another action, or is valid for too long is rejected", () => {
  const text = Buffer.from(token.slice("sagemaker-api-key-".length), "base64").toString();
  const changed = (from: string, to: string) => {
    assert.ok(text.includes(from));
    return `Bearer sagemaker-api-key-${Buffer.from(text.replace(from, to)).toString("base64")}`;
  };
  assert.throws(() => at(madeMs).verifyBearer(changed("Expires=43200", "Expires=43201")), reason("mismatch"));
  assert.throws(() => at(madeMs).verifyBearer(changed("CallWithBearerToken", "DeleteEndpoint")), reason("mismatch"));
  assert.throws(() => at(madeMs).verifyBearer(changed("AKIDEXAMPLE", "AKIDANOTHER")), reason("unknown-key"));
  assert.throws(() => at(madeMs).verifyBearer(changed("&Version=1", "")), reason("missing"));
  assert.throws(() => at(madeMs).verifyBearer("Bearer unused"), reason("missing"));
  assert.throws(() => at(madeMs).verifyBearer(undefined), reason("missing"));
});

test("a token signed for a longer period or another request is rejected", () => {
  for (const other of [
    "sagemaker-api-key-c2FnZW1ha2VyLmFtYXpvbmF3cy5jb20vP0FjdGlvbj1DYWxsV2l0aEJlYXJlclRva2VuJlgtQW16LUFsZ29yaXRobT1BV1M0LUhNQUMtU0hBMjU2JlgtQW16LUNyZWRlbnRpYWw9QUtJREVYQU1QTEUlMkYyMDI2MTEyMiUyRmV1LXdlc3QtMSUyRnNhZ2VtYWtlciUyRmF3czRfcmVxdWVzdCZYLUFtei1EYXRlPTIwMjYxMTIyVDIzNDAwMFomWC1BbXotRXhwaXJlcz00MzIwMSZYLUFtei1TaWduZWRIZWFkZXJzPWhvc3QmWC1BbXotU2lnbmF0dXJlPTgxN2JiYjM1ODAxZGY1ZjkyZmY4NjZlMjg0MGYyMGUwOWQ3ZDkwMWRhZWM5NjdkZjRhMTRkZTE0ZTg5Y2VkMTgmVmVyc2lvbj0x",
    "sagemaker-api-key-c2FnZW1ha2VyLmFtYXpvbmF3cy5jb20vP0FjdGlvbj1EZXNjcmliZUVuZHBvaW50JlgtQW16LUFsZ29yaXRobT1BV1M0LUhNQUMtU0hBMjU2JlgtQW16LUNyZWRlbnRpYWw9QUtJREVYQU1QTEUlMkYyMDI2MTEyMiUyRmV1LXdlc3QtMSUyRnNhZ2VtYWtlciUyRmF3czRfcmVxdWVzdCZYLUFtei1EYXRlPTIwMjYxMTIyVDIzNDAwMFomWC1BbXotRXhwaXJlcz00MzIwMCZYLUFtei1TaWduZWRIZWFkZXJzPWhvc3QmWC1BbXotU2lnbmF0dXJlPWI5NGFlZDYxZTA3ZjM1MjBkMWU2ODkzZWRkZmE1NDg3MjNiZTZlNTE3ZGQyZDVhYzRkMzEwNTFmZTM5MDM0OGMmVmVyc2lvbj0x",
  ]) {
    assert.throws(() => at(madeMs).verifyBearer(`Bearer ${other}`), reason("malformed"));
  }
});

test("a bearer token is not accepted as the signature of any other request", () => {
  const request = { method: "POST", url: "/", headers: { host: "x", authorization: `Bearer ${token}` } };
  assert.throws(() => at(madeMs).verify(request, null, "s3"), reason("missing"));
});
