import assert from "node:assert/strict";
import { test } from "node:test";
import { EventLoopQueue } from "./event-loop-queue.ts";

const never = new AbortController().signal;

test("one of many computations runs in each tick of the event loop, and all finish in order", async () => {
  const loopQueue = new EventLoopQueue();
  let used = 0;
  let takenBefore = 0;
  let mostInARound = 0;
  let isOver = false;
  const look = () => {
    mostInARound = Math.max(mostInARound, used - takenBefore);
    takenBefore = used;
    if (!isOver) setImmediate(look);
  };
  look();
  const ended: number[] = [];
  const compute = async (which: number) => {
    for (let step = 0; step < 10; step += 1) {
      await loopQueue.next(never);
      used += 1;
    }
    ended.push(which);
  };
  await Promise.all(Array.from({ length: 20 }, (_, which) => compute(which)));
  isOver = true;
  assert.equal(used, 200);
  assert.equal(mostInARound, 1);
  assert.deepEqual(
    ended,
    ended.toSorted((a, b) => a - b),
  );
});

test("an aborted computation is skipped and does not block the others", async () => {
  const loopQueue = new EventLoopQueue();
  const disconnected = new AbortController();
  const left = loopQueue.next(disconnected.signal);
  const stayed = loopQueue.next(never);
  disconnected.abort(new Error("gone"));
  await assert.rejects(left, { message: "gone" });
  await stayed;
});
