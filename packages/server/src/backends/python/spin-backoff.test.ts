import assert from "node:assert/strict";
import { test } from "node:test";
import { SpinBackoff } from "./spin-backoff.ts";

/** Returns the duration in milliseconds for which polling pauses after a preemption at `nowMs`. */
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

test("consecutive pauses double, up to 1.28 s", () => {
  const backoff = new SpinBackoff();
  const pauses: number[] = [];
  for (let nowMs = 0; pauses.length < 10; nowMs += pauses.at(-1)! + 5) pauses.push(pauseMs(backoff, nowMs));
  assert.deepEqual(pauses, [5, 10, 20, 40, 80, 160, 320, 640, 1280, 1280]);
});

test("after more than 20 ms of polling the pause is short again", () => {
  const backoff = new SpinBackoff();
  assert.equal(pauseMs(backoff, 0), 5);
  assert.equal(pauseMs(backoff, 5 + 19), 10);
  assert.equal(pauseMs(backoff, 5 + 19 + 10 + 21), 5);
});
