import assert from "node:assert/strict";
import { closeSync, writeSync } from "node:fs";
import { test, type TestContext } from "node:test";
import { FrameWriter, type RunThreadResult } from "../../native/index.ts";
import { openSocketPair } from "@galatea/base/system";
import { RunThreadClient, RunThreadEnded } from "./run-thread-client.ts";

const nextTick = () => new Promise((resolve) => setImmediate(resolve));

/** Opens a client; the test acts as the run thread. */
function open(context: TestContext) {
  const pair = openSocketPair();
  const broken: string[] = [];
  const thread = new RunThreadClient(0, pair.ours, (error) => broken.push(error.message));
  context.after(() => thread.close());
  return { thread, broken, theirs: pair.theirs };
}

function resultOf(rank: number): RunThreadResult {
  return { kind: "done", results: [{ elementType: 1, byteLength: 4, shape: Array.from({ length: rank }, () => 1) }] };
}

test("a result split at any byte is read as one result", async (context) => {
  const { thread, broken, theirs } = open(context);
  const expected = resultOf(2);
  const frame = Buffer.from(new FrameWriter().result(expected));
  for (let cut = 1; cut < frame.byteLength; cut++) {
    const pending = thread.execute({ kind: "drop" });
    writeSync(theirs, frame, 0, cut);
    await nextTick();
    await nextTick();
    writeSync(theirs, frame, cut);
    assert.deepEqual(await pending, expected, `cut at ${cut}`);
  }
  closeSync(theirs);
  assert.deepEqual(broken, []);
});

test("a result longer than the read buffer is assembled from several reads", async (context) => {
  const { thread, theirs } = open(context);
  const results = Array.from({ length: 3000 }, () => ({ elementType: 1, byteLength: 4, shape: [1] }));
  const frame = Buffer.from(new FrameWriter().result({ kind: "done", results }));
  assert.ok(frame.byteLength > 64 * 1024);
  const pending = thread.execute({ kind: "drop" });
  for (let at = 0; at < frame.byteLength; at += 40_000) {
    writeSync(theirs, frame, at, Math.min(40_000, frame.byteLength - at));
    await nextTick();
    await nextTick();
  }
  assert.deepEqual(await pending, { kind: "done", results });
  closeSync(theirs);
});

for (const [what, bytes] of [
  [
    "that sends two results for one command",
    () => [resultOf(1), resultOf(1)].map((one) => Buffer.from(new FrameWriter().result(one))),
  ],
  ["that sends an invalid length", () => [Buffer.alloc(16, 0xff)]],
] as const) {
  test(`a run thread ${what} is broken`, async (context) => {
    const { thread, broken, theirs } = open(context);
    thread.execute({ kind: "drop" }).catch(() => {});
    writeSync(theirs, Buffer.concat(bytes()));
    await nextTick();
    await nextTick();
    assert.equal(broken.length, 1);
    closeSync(theirs);
  });
}

test("a command to a run thread that has ended is rejected as not started", async (context) => {
  const { thread, theirs } = open(context);
  closeSync(theirs);
  await assert.rejects(thread.execute({ kind: "drop" }), RunThreadEnded);
});
