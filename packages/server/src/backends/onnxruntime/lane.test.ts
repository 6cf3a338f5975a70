import assert from "node:assert/strict";
import { closeSync, writeSync } from "node:fs";
import { test, type TestContext } from "node:test";
import { FrameWriter, type LaneResult } from "../../native/index.ts";
import { openSocketPair } from "@galatea/base/system";
import { Lane, LaneEnded } from "./lane.ts";

const turn = () => new Promise((resolve) => setImmediate(resolve));

/** A lane whose thread is the test. */
function open(context: TestContext) {
  const pair = openSocketPair();
  const broken: string[] = [];
  const lane = new Lane(0, pair.ours, (error) => broken.push(error.message));
  context.after(() => lane.close());
  return { lane, broken, theirs: pair.theirs };
}

function answerOf(rank: number): LaneResult {
  return { kind: "done", results: [{ elementType: 1, byteLength: 4, shape: Array.from({ length: rank }, () => 1) }] };
}

test("an answer is read as one, wherever it is cut", async (context) => {
  const { lane, broken, theirs } = open(context);
  const answer = answerOf(2);
  const frame = Buffer.from(new FrameWriter().answer(answer));
  for (let cut = 1; cut < frame.byteLength; cut++) {
    const asked = lane.ask({ kind: "drop" });
    writeSync(theirs, frame, 0, cut);
    await turn();
    await turn();
    writeSync(theirs, frame, cut);
    assert.deepEqual(await asked, answer, `cut at ${cut}`);
  }
  closeSync(theirs);
  assert.deepEqual(broken, []);
});

test("an answer longer than what is read at once comes in pieces", async (context) => {
  const { lane, theirs } = open(context);
  const results = Array.from({ length: 3000 }, () => ({ elementType: 1, byteLength: 4, shape: [1] }));
  const frame = Buffer.from(new FrameWriter().answer({ kind: "done", results }));
  assert.ok(frame.byteLength > 64 * 1024);
  const asked = lane.ask({ kind: "drop" });
  for (let at = 0; at < frame.byteLength; at += 40_000) {
    writeSync(theirs, frame, at, Math.min(40_000, frame.byteLength - at));
    await turn();
    await turn();
  }
  assert.deepEqual(await asked, { kind: "done", results });
  closeSync(theirs);
});

for (const [what, bytes] of [
  [
    "of two answers to one order",
    () => [answerOf(1), answerOf(1)].map((one) => Buffer.from(new FrameWriter().answer(one))),
  ],
  ["of no known length", () => [Buffer.alloc(16, 0xff)]],
] as const) {
  test(`a lane ${what} is broken`, async (context) => {
    const { lane, broken, theirs } = open(context);
    lane.ask({ kind: "drop" }).catch(() => {});
    writeSync(theirs, Buffer.concat(bytes()));
    await turn();
    await turn();
    assert.equal(broken.length, 1);
    closeSync(theirs);
  });
}

test("an order that finds nobody has not begun", async (context) => {
  const { lane, theirs } = open(context);
  closeSync(theirs);
  await assert.rejects(lane.ask({ kind: "drop" }), LaneEnded);
});
