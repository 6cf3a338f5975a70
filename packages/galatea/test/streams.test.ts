/** Responses in chunks through the platform: real containers, and the JavaScript SDK's reader of event streams. */
import assert from "node:assert/strict";
import { request } from "node:http";
import { test } from "node:test";
import { eventually } from "@galatea/base/core/eventually-fixture.ts";
import { StreamFixture } from "./streams-fixture.ts";

test("the first chunk is sent before the last one exists, with the container's response headers", async () => {
  await using bench = await StreamFixture.open();
  await bench.deploy("e", "one");
  const stream = await bench.call("e", { segments: ["first"], holds: true, more: ["second"] }, { Accept: "text/y" });
  assert.equal(await stream.next(), "first");
  assert.equal(stream.output.ContentType, "text/x-one");
  assert.equal(stream.output.InvokedProductionVariant, "all");
  assert.deepEqual(bench.samples.get("Invocations"), undefined);
  stream.release();
  assert.deepEqual(await stream.rest(), ["second"]);
  await eventually(() => bench.samples.get("Invocations")?.length === 1);
  assert.deepEqual(bench.samples.get("MidStreamErrors"), [0]);
  assert.deepEqual(bench.samples.get("InvocationModelErrors"), [0]);
  const [[first], [model], [overhead]] = [
    bench.samples.get("FirstChunkLatency") ?? [],
    bench.samples.get("FirstChunkModelLatency") ?? [],
    bench.samples.get("FirstChunkOverheadLatency") ?? [],
  ] as [number[], number[], number[]];
  assert.ok(first !== undefined && model !== undefined && overhead !== undefined);
  assert.ok(model > 0 && Math.abs(model + overhead - first) < 1, `${model} + ${overhead} = ${first}`);
});

test("a failure before the first chunk has the same error as in InvokeEndpoint", async () => {
  await using bench = await StreamFixture.open();
  await bench.deploy("e", "one");
  const refused = bench.call("e", { status: 400, segments: ["no"] });
  await assert.rejects(refused, { name: "ModelError", OriginalStatusCode: 400, OriginalMessage: "no" });
  await assert.rejects(bench.call("e", { ends: "breaks" }), { name: "ModelError", OriginalStatusCode: 503 });
  const unknown = bench.call("e", { segments: ["x"] }, { TargetVariant: "b" });
  await assert.rejects(unknown, { name: "ValidationError", message: /Variant b not found/ });
  assert.equal(bench.samples.get("MidStreamErrors"), undefined);
});

test("a container that dies during its response ends the stream with a ModelStreamError after the chunks sent", async () => {
  await using bench = await StreamFixture.open();
  await bench.deploy("e", "one");
  const stream = await bench.call("e", { segments: ["first"], ends: "dies" });
  assert.equal(await stream.next(), "first");
  await assert.rejects(stream.next(), { name: "ModelStreamError", ErrorCode: "StreamBroken", message: /primary/ });
  await eventually(() => bench.samples.get("MidStreamErrors")?.length === 1);
  assert.deepEqual(bench.samples.get("MidStreamErrors"), [1]);
  assert.deepEqual(bench.samples.get("InvocationModelErrors"), [1]);
});

test("a silent stream outlives the idle connection timeout and ends at its own limit", async () => {
  await using bench = await StreamFixture.open({ streamMsMax: 4000 }, 100);
  await bench.deploy("e", "one");
  const stream = await bench.call("e", { segments: ["first"], holds: true });
  assert.equal(await stream.next(), "first");
  await assert.rejects(stream.next(), { name: "ModelStreamError", ErrorCode: "ModelInvocationTimeExceeded" });
  await eventually(() => bench.printed.includes("cut 5"));
});

test("a client that disconnects cancels the container's work, which counts no error", async () => {
  await using bench = await StreamFixture.open();
  await bench.deploy("e", "one");
  const stream = await bench.call("e", { segments: ["first"], holds: true });
  assert.equal(await stream.next(), "first");
  stream.disconnect();
  await eventually(() => bench.printed.includes("cut 5"));
  await eventually(() => bench.samples.get("MidStreamErrors")?.length === 1);
  assert.deepEqual(bench.samples.get("MidStreamErrors"), [0]);
  assert.deepEqual(bench.samples.get("InvocationModelErrors"), [0]);
});

test("a client that does not read applies back-pressure to the container until it disconnects", async () => {
  await using bench = await StreamFixture.open();
  await bench.deploy("e", "one");
  const outgoing = request(`${bench.url}/endpoints/e/invocations-response-stream`, { method: "POST" });
  outgoing.on("error", () => {});
  const result = new Promise<void>((resolve) =>
    outgoing.once("response", (response) => resolve(void response.pause())),
  );
  outgoing.end(JSON.stringify({ endless: true }));
  await result;
  await eventually(() => bench.printed.includes("held up"));
  outgoing.socket?.resetAndDestroy();
  await eventually(() => /cut \d/.test(bench.printed));
  const sentBytes = Number(/cut (\d+)/.exec(bench.printed)?.[1]);
  assert.ok(sentBytes < 16 * 2 ** 20, `${sentBytes} bytes were sent after the client disconnected`);
});

test("a million chunks of one byte arrive completely in few events", async () => {
  await using bench = await StreamFixture.open();
  await bench.deploy("e", "one");
  const stream = await bench.call("e", { tiny: true });
  const segments = await stream.rest();
  assert.equal(
    segments.reduce((sum, segment) => sum + segment.length, 0),
    1_000_000,
  );
  assert.ok(segments.length < 20_000, `${segments.length} events`);
});

test("the last container of a pipeline streams", async () => {
  await using bench = await StreamFixture.open();
  await bench.deploy("e", "one", "two");
  const second = JSON.stringify({ segments: ["first"], holds: true, more: ["second"] });
  const stream = await bench.call("e", { segments: [second] });
  assert.equal(await stream.next(), "first");
  assert.equal(stream.output.ContentType, "text/x-two");
  stream.release();
  assert.deepEqual(await stream.rest(), ["second"]);
});

test("an instance that an update removes finishes its streams before it ends", async () => {
  await using bench = await StreamFixture.open();
  await bench.deploy("e", "one");
  await bench.configure("next", 1, "two");
  const stream = await bench.call("e", { segments: ["first"], holds: true, more: ["second"] });
  assert.equal(await stream.next(), "first");
  const retained = new Set<never>();
  const update = { name: "e", configName: "next", owner: { accountId: "000000000000", region: "us-east-1" } };
  await bench.hosting.endpoints.update({ ...update, deploymentConfig: null, retainsDeployment: false, retained });
  await eventually(async () => {
    const requested = await bench.call("e", { segments: ["x"] });
    await requested.rest();
    return requested.output.ContentType === "text/x-two";
  });
  stream.release();
  assert.deepEqual(await stream.rest(), ["second"]);
});

test("a platform that stops waits for its streams, and aborts them at its time limit", async () => {
  await using bench = await StreamFixture.open();
  // A signal lets all streams of a container go on.
  await bench.deploy("e", "one");
  await bench.deploy("f", "one");
  const [ends, stays] = await Promise.all([
    bench.call("e", { segments: ["a"], holds: true, more: ["b"] }),
    bench.call("f", { segments: ["a"], holds: true }),
  ]);
  assert.deepEqual([await ends.next(), await stays.next()], ["a", "a"]);
  const closed = bench.platform.close(1000);
  ends.release();
  assert.deepEqual(await ends.rest(), ["b"]);
  // A stream that ended as whole ones do would be taken for one.
  await assert.rejects(stays.next(), { name: "InternalStreamFailure", message: /The platform is shutting down/ });
  await closed;
});
