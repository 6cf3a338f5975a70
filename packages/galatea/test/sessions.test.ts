/** Stateful sessions through the platform's port: real containers, and the JavaScript SDK. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { eventually } from "@galatea/base/core/eventually-fixture.ts";
import { owner } from "../../hosting/test/hosting-fixture.ts";
import { StreamFixture } from "./streams-fixture.ts";

const later = "2999-01-01T00:00:00Z";
const open = (bench: StreamFixture, id: string, expires = later) =>
  bench.invoke("e", { opens: `${id}; Expires=${expires}` }, { SessionId: "NEW_SESSION" });

test("requests and streams of a session go to the instance that opened it, until the model closes it", async () => {
  await using bench = await StreamFixture.open();
  await bench.deployMany("e", 3, "one");
  const pids: string[] = [];
  for (const id of ["s1", "s2", "s3", "s4"]) {
    const opened = await open(bench, id);
    assert.equal(opened.NewSessionId, `${id}; Expires=${later}`);
    pids.push(opened.CustomAttributes ?? "");
  }
  for (const [index, pid] of pids.entries()) {
    const SessionId = `s${index + 1}`;
    for (let count = 0; count < 4; count += 1) {
      assert.equal((await bench.invoke("e", {}, { SessionId })).CustomAttributes, pid);
    }
    const stream = await bench.call("e", { segments: ["x"] }, { SessionId });
    assert.deepEqual([await stream.rest(), String(stream.pid)], [["x"], pid]);
  }
  const closed = await bench.invoke("e", { closes: "s1" }, { SessionId: "s1" });
  assert.equal(closed.ClosedSessionId, "s1");
  const error = { name: "ValidationError", message: /Session s1 not found/ };
  await assert.rejects(bench.invoke("e", {}, { SessionId: "s1" }), error);
  await bench.invoke("e", {}, { SessionId: "s2" });
});

test("an unknown, a closed, and another variant's session id are rejected with the reason", async () => {
  await using bench = await StreamFixture.open();
  await bench.deploy("e", "one");
  await open(bench, "s1", "2001-01-01T00:00:00Z");
  await assert.rejects(bench.invoke("e", {}, { SessionId: "s1" }), { name: "ValidationError", message: /Session s1/ });
  const call = bench.call("e", {}, { SessionId: "NEW_SESSION" });
  await assert.rejects(call, { name: "ValidationError", message: /'sessionId' failed to satisfy constraint/ });
  await assert.rejects(bench.invoke("e", {}, { SessionId: "s_1" }), { name: "ValidationError", message: /sessionId/ });
  const wrong = bench.invoke("e", { opens: "s1" }, { SessionId: "NEW_SESSION" });
  await assert.rejects(wrong, { name: "ModelError", message: /is not a session id with an expiry time/ });
  await open(bench, "s2");
  const errors = () =>
    ["InvocationModelErrors", "Invocation5XXErrors", "MidStreamErrors"].map((metric) =>
      (bench.samples.get(metric) ?? []).reduce((sum, each) => sum + each, 0),
    );
  const [modelErrors = 0, serverErrors = 0, streamErrors = 0] = errors();
  const used = {
    name: "ModelError",
    message: "The model opened a session with id s2, but another open session has the same id.",
    OriginalStatusCode: 502,
  };
  await assert.rejects(open(bench, "s2"), used);
  assert.deepEqual(errors(), [modelErrors + 1, serverErrors + 1, streamErrors]);
  // A response of this length is not buffered.
  const long = { opens: `s2; Expires=${later}`, length: 2 * 2 ** 20, holds: true };
  await assert.rejects(bench.invoke("e", long, { SessionId: "NEW_SESSION" }), used);
  assert.deepEqual(errors(), [modelErrors + 2, serverErrors + 2, streamErrors]);
  const other = bench.invoke("e", {}, { SessionId: "s2", TargetVariant: "b" });
  await assert.rejects(other, { name: "ValidationError", message: /Session s2 is on variant all, not on variant b/ });
  const plain = await bench.invoke("e", { opens: `s3; Expires=${later}`, closes: "s2" });
  assert.deepEqual([plain.NewSessionId, plain.ClosedSessionId], [undefined, undefined]);
});

test("sessions end with an instance that an update removes", async () => {
  await using bench = await StreamFixture.open();
  await bench.deploy("e", "one");
  await open(bench, "s1");
  await bench.configure("next", 1, "two");
  const update = { name: "e", configName: "next", owner, deploymentConfig: null, retainsDeployment: false };
  await bench.hosting.endpoints.update({ ...update, retained: new Set<never>() });
  await eventually(async () => (await bench.invoke("e", {})).ContentType === "text/x-two");
  await eventually(async () => {
    const error = await bench.invoke("e", {}, { SessionId: "s1" }).catch((thrown: Error) => thrown);
    return error instanceof Error && error.message.startsWith("Session s1 not found");
  });
});
