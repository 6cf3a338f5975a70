/** What metrics count of invocations that do not end well, through the platform's port: real containers and connections. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { request, type ClientRequest, type IncomingMessage } from "node:http";
import { test } from "node:test";
import { eventually } from "@galatea/base/core/eventually-fixture.ts";
import { StreamFixture } from "./streams-fixture.ts";

const counted = ["Invocations", "Invocation4XXErrors", "Invocation5XXErrors", "InvocationModelErrors"];

function sums(bench: StreamFixture): readonly number[] {
  return counted.map((metric) => (bench.samples.get(metric) ?? []).reduce((sum, value) => sum + value, 0));
}

function post(bench: StreamFixture, headers: Readonly<Record<string, string>> = {}): ClientRequest {
  const outgoing = request(`${bench.url}/endpoints/e/invocations`, { method: "POST", headers });
  outgoing.on("error", () => {});
  return outgoing;
}

test("a client that disconnects before the response, or while it sends its request, counts no model error", async () => {
  await using bench = await StreamFixture.open();
  await bench.deploy("e", "one");
  const waiting = post(bench);
  waiting.end(JSON.stringify({ segments: ["x"], holds: true }));
  await eventually(() => bench.printed.includes("holds"));
  waiting.destroy();
  await eventually(() => sums(bench)[0] === 1);
  // One request that is buffered, and one that streams to the container.
  for (const length of [1000, 4_000_000]) {
    const sending = post(bench, { "content-length": String(length) });
    sending.write(Buffer.alloc(length / 2));
    const count = sums(bench)[0] ?? 0;
    await new Promise((resolve) => setTimeout(resolve, 200));
    sending.destroy();
    await eventually(() => sums(bench)[0] === count + 1);
  }
  assert.deepEqual(sums(bench), [3, 0, 0, 0]);
  // The container is as healthy as before.
  assert.equal((await bench.invoke("e", { segments: ["fine"] })).Body.transformToString(), "fine");
});

test("a long response that fails after its first bytes counts a model error", async () => {
  await using bench = await StreamFixture.open();
  await bench.deploy("e", "one");
  const request = post(bench);
  request.end(JSON.stringify({ length: 2_000_000, segments: ["x".repeat(10_000)], ends: "breaks" }));
  const [response] = (await once(request, "response")) as [IncomingMessage];
  assert.equal(response.statusCode, 200);
  await assert.rejects(response.toArray(), { code: "ECONNRESET" });
  await eventually(() => sums(bench)[0] === 1);
  assert.deepEqual(sums(bench), [1, 0, 0, 1]);
});

test("a long response whose client does not read it until the time limit counts no model error", async () => {
  await using bench = await StreamFixture.open({ responseMsMax: 3000, responseBytesMax: 64_000_000 });
  await bench.deploy("e", "one");
  const request = post(bench);
  request.end(JSON.stringify({ endless: true, length: 60_000_000 }));
  const [response] = (await once(request, "response")) as [IncomingMessage];
  response.pause();
  await eventually(() => sums(bench)[0] === 1);
  assert.deepEqual(sums(bench), [1, 0, 0, 0]);
  response.destroy();
});
