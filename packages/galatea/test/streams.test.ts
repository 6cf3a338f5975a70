/** Answers in parts through the platform's port: real containers, and the JavaScript SDK's reader of event streams. */
import assert from "node:assert/strict";
import { request } from "node:http";
import { test } from "node:test";
import { eventually } from "@galatea/base/core/eventually-fixture.ts";
import { StreamFixture } from "./streams-fixture.ts";

test("the first chunk is sent before the last one exists, with the container's response headers", async () => {
  await using bench = await StreamFixture.open();
  await bench.deploy("e", "one");
  const stream = await bench.ask("e", { parts: ["first"], holds: true, more: ["second"] }, { Accept: "text/y" });
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
  const refused = bench.ask("e", { status: 400, parts: ["no"] });
  await assert.rejects(refused, { name: "ModelError", OriginalStatusCode: 400, OriginalMessage: "no" });
  await assert.rejects(bench.ask("e", { ends: "breaks" }), { name: "ModelError", OriginalStatusCode: 503 });
  const unknown = bench.ask("e", { parts: ["x"] }, { TargetVariant: "b" });
  await assert.rejects(unknown, { name: "ValidationError", message: /Variant b not found/ });
  assert.equal(bench.samples.get("MidStreamErrors"), undefined);
});

test("a container that dies during its response ends the stream with a ModelStreamError after the chunks sent", async () => {
  await using bench = await StreamFixture.open();
  await bench.deploy("e", "one");
  const stream = await bench.ask("e", { parts: ["first"], ends: "dies" });
  assert.equal(await stream.next(), "first");
  await assert.rejects(stream.next(), { name: "ModelStreamError", ErrorCode: "StreamBroken", message: /primary/ });
  await eventually(() => bench.samples.get("MidStreamErrors")?.length === 1);
  assert.deepEqual(bench.samples.get("MidStreamErrors"), [1]);
  assert.deepEqual(bench.samples.get("InvocationModelErrors"), [1]);
});

test("a silent stream outlives the idle connection timeout and ends at its own limit", async () => {
  await using bench = await StreamFixture.open({ streamMsMax: 4000 }, 100);
  await bench.deploy("e", "one");
  const stream = await bench.ask("e", { parts: ["first"], holds: true });
  assert.equal(await stream.next(), "first");
  await assert.rejects(stream.next(), { name: "ModelStreamError", ErrorCode: "ModelInvocationTimeExceeded" });
  await eventually(() => bench.printed.includes("cut 5"));
});

test("a client that disconnects cancels the container's work, which counts no error", async () => {
  await using bench = await StreamFixture.open();
  await bench.deploy("e", "one");
  const stream = await bench.ask("e", { parts: ["first"], holds: true });
  assert.equal(await stream.next(), "first");
  stream.leave();
  await eventually(() => bench.printed.includes("cut 5"));
  await eventually(() => bench.samples.get("MidStreamErrors")?.length === 1);
  assert.deepEqual(bench.samples.get("MidStreamErrors"), [0]);
  assert.deepEqual(bench.samples.get("InvocationModelErrors"), [0]);
});

test("a client that does not read applies back-pressure to the container until it disconnects", async () => {
  await using bench = await StreamFixture.open();
  await bench.deploy("e", "one");
  const asked = request(`${bench.url}/endpoints/e/invocations-response-stream`, { method: "POST" });
  asked.on("error", () => {});
  const answered = new Promise<void>((resolve) => asked.once("response", (response) => resolve(void response.pause())));
  asked.end(JSON.stringify({ endless: true }));
  await answered;
  await eventually(() => bench.printed.includes("held up"));
  asked.socket?.resetAndDestroy();
  await eventually(() => /cut \d/.test(bench.printed));
  const sentBytes = Number(/cut (\d+)/.exec(bench.printed)?.[1]);
  assert.ok(sentBytes < 16 * 2 ** 20, `${sentBytes} bytes were sent after the client disconnected`);
});

test("a million chunks of one byte arrive completely in few events", async () => {
  await using bench = await StreamFixture.open();
  await bench.deploy("e", "one");
  const stream = await bench.ask("e", { tiny: true });
  const parts = await stream.rest();
  assert.equal(
    parts.reduce((sum, part) => sum + part.length, 0),
    1_000_000,
  );
  assert.ok(parts.length < 20_000, `${parts.length} events`);
});

test("the last container of a pipeline streams", async () => {
  await using bench = await StreamFixture.open();
  await bench.deploy("e", "one", "two");
  const second = JSON.stringify({ parts: ["first"], holds: true, more: ["second"] });
  const stream = await bench.ask("e", { parts: [second] });
  assert.equal(await stream.next(), "first");
  assert.equal(stream.output.ContentType, "text/x-two");
  stream.release();
  assert.deepEqual(await stream.rest(), ["second"]);
});

test("an instance that an update removes finishes its streams before it ends", async () => {
  await using bench = await StreamFixture.open();
  await bench.deploy("e", "one");
  await bench.configure("next", 1, "two");
  const stream = await bench.ask("e", { parts: ["first"], holds: true, more: ["second"] });
  assert.equal(await stream.next(), "first");
  const retained = new Set<never>();
  const update = { name: "e", configName: "next", owner: { accountId: "000000000000", region: "us-east-1" } };
  await bench.hosting.endpoints.update({ ...update, deploymentConfig: null, retainsDeployment: false, retained });
  await eventually(async () => {
    const asked = await bench.ask("e", { parts: ["x"] });
    await asked.rest();
    return asked.output.ContentType === "text/x-two";
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
    bench.ask("e", { parts: ["a"], holds: true, more: ["b"] }),
    bench.ask("f", { parts: ["a"], holds: true }),
  ]);
  assert.deepEqual([await ends.next(), await stays.next()], ["a", "a"]);
  const closed = bench.platform.close(1000);
  ends.release();
  assert.deepEqual(await ends.rest(), ["b"]);
  // A stream that ended as whole ones do would be taken for one.
  await assert.rejects(stays.next(), { name: "InternalStreamFailure", message: /The platform is shutting down/ });
  await closed;
});
