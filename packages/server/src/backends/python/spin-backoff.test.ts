import assert from "node:assert/strict";
import { test } from "node:test";
import { SpinBackoff } from "./spin-backoff.ts";

/** How long polling pauses when the poller is preempted at this time, in milliseconds. */
function pauseMs(backoff: SpinBackoff, nowMs: number): number {
  backoff.preempted(nowMs * 1e6);
  let pause = 0;
  while (!backoff.maySpin((nowMs + pause) * 1e6)) pause++;
  return pause;
}

test("polling is allowed until the poller is preempted", () => {
  const backoff = new SpinBackoff();
  assert.equal(backoff.maySpin(0), true);
  backoff.preempted(0);
  assert.equal(backoff.maySpin(1), false);
});

test("each pause that follows closely is twice as long as the one before, and 1.28 s at most", () => {
  const backoff = new SpinBackoff();
  const pauses: number[] = [];
  for (let nowMs = 0; pauses.length < 8; nowMs += pauses.at(-1)! + 5) pauses.push(pauseMs(backoff, nowMs));
  assert.deepEqual(pauses, [20, 40, 80, 160, 320, 640, 1280, 1280]);
});

test("after a long time without preemption the first pause is short again", () => {
  const backoff = new SpinBackoff();
  assert.equal(pauseMs(backoff, 0), 20);
  assert.equal(pauseMs(backoff, 25), 40);
  assert.equal(pauseMs(backoff, 25 + 40 + 41), 20);
});
