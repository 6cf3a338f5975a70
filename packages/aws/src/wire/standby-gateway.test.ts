import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { after, before, test } from "node:test";
import { silentLogger, systemClock } from "@galatea/base";
import { createStandbyGateway } from "./standby-gateway.ts";

let leader: string | null = "10.0.0.7";
const server = createServer();
let url = "";
before(async () => {
  createStandbyGateway({ leader: () => leader, clock: systemClock, logger: silentLogger }).attach(server);
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
after(() => {
  server.closeAllConnections();
  server.close();
});

const signed = (service: string) => ({
  authorization: `AWS4-HMAC-SHA256 Credential=key/20260101/us-east-1/${service}/aws4_request, SignedHeaders=host, Signature=0`,
});
const text = "This platform is a standby: another platform at 10.0.0.7 has the records and serves this request.";
const form = { "content-type": "application/x-www-form-urlencoded" };

test("a standby is live and not ready", async () => {
  const health = await fetch(`${url}/health`);
  assert.deepEqual([health.status, await health.json()], [200, { status: "standby", leader: "10.0.0.7" }]);
  const ping = await fetch(`${url}/ping`);
  assert.deepEqual([ping.status, await ping.text()], [503, "standby\n"]);
  assert.equal((await fetch(`${url}/ping`, { method: "HEAD" })).status, 503);
  // A signed request for these paths is for a bucket with that name.
  assert.match(await (await fetch(`${url}/health`, { headers: signed("s3") })).text(), /<Code>ServiceUnavailable/);
});

for (const [what, path, headers, expected] of [
  [
    "a call of SageMaker",
    "/",
    { ...signed("sagemaker"), "x-amz-target": "SageMaker.ListModels" },
    "application/x-amz-json-1.1",
  ],
  ["an invocation", "/endpoints/a/invocations", signed("sagemaker"), "application/json"],
  ["an unsigned invocation", "/endpoints/a/invocations-response-stream", {}, "application/json"],
  ["a call of IAM", "/", { ...signed("iam"), ...form }, "text/xml"],
  ["a signed upload", "/bucket/key", signed("s3"), "application/xml"],
  ["an unsigned upload by curl", "/bucket/key", form, "application/xml"],
] as const) {
  test(`${what} to a standby gets 503 in its protocol, with the address of the leader`, async () => {
    const response = await fetch(`${url}${path}`, { method: "POST", headers, body: "x".repeat(100_000) });
    assert.deepEqual([response.status, response.headers.get("content-type")], [503, expected]);
    assert.equal(response.headers.get("retry-after"), "1");
    const body = await response.text();
    assert.ok(body.includes("ServiceUnavailable") || response.headers.get("x-amzn-errortype") === "ServiceUnavailable");
    assert.ok(body.includes(text), body);
  });
}

test("a standby that does not know the leader names none", async () => {
  leader = null;
  assert.match(await (await fetch(`${url}/bucket`)).text(), /another platform has the records and serves/);
});
