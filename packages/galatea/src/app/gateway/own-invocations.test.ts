import assert from "node:assert/strict";
import { test } from "node:test";
import { invokedEndpoint } from "./own-invocations.ts";

const post = (url: string, headers: Record<string, string> = {}) => invokedEndpoint({ method: "POST", url, headers });

test("invocations and streamed invocations need no state of the leader", () => {
  assert.equal(post("/endpoints/a-1/invocations"), "a-1");
  assert.equal(post("/endpoints/a-1/invocations-response-stream?x=y"), "a-1");
});

test("everything else is for the leader: other operations, sessions and inference components", () => {
  for (const url of [
    "/endpoints/a/async-invocations",
    "/endpoints/a/invocations/b",
    "/endpoints/a",
    "/bucket/endpoints/a/invocations",
  ])
    assert.equal(post(url), null, url);
  for (const name of ["x-amzn-sagemaker-session-id", "x-amzn-sagemaker-inference-component"])
    assert.equal(post("/endpoints/a/invocations", { [name]: "b" }), null, name);
  assert.equal(invokedEndpoint({ method: "GET", url: "/endpoints/a/invocations", headers: {} }), null);
});
