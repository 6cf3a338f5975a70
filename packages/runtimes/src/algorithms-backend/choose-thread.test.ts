import assert from "node:assert/strict";
import { test } from "node:test";
import { chooseThread, type ThreadState } from "./choose-thread.ts";

const counts = { spread: 2, most: 3 };
const [free, busy, slow] = (["free", "busy", "slow"] as const).map((state) => (modelCount: number): ThreadState => ({
  state,
  modelCount,
})) as [(count: number) => ThreadState, (count: number) => ThreadState, (count: number) => ThreadState];
const wait = { take: "wait" };
const fresh = { take: "new" };
const thread = (index: number) => ({ take: "thread", index });

test("chooseThread returns a model's own thread when it is free, and waits while that thread is busy", () => {
  assert.deepEqual(chooseThread([free(5), free(0)], 0, counts), thread(0));
  assert.deepEqual(chooseThread([busy(5), free(0)], 0, counts), wait);
});

test("chooseThread moves a model off a slow thread to the free thread with the fewest models, then to a new thread, or waits", () => {
  assert.deepEqual(chooseThread([slow(5), free(2), free(1)], 0, counts), thread(2));
  assert.deepEqual(chooseThread([slow(5), busy(1)], 0, counts), fresh);
  assert.deepEqual(chooseThread([slow(5), slow(1), busy(1)], 0, counts), wait);
});

test("chooseThread starts new threads for new models up to the spread, and then shares the thread with the fewest models", () => {
  assert.deepEqual(chooseThread([], null, counts), fresh);
  assert.deepEqual(chooseThread([free(1)], null, counts), fresh);
  assert.deepEqual(chooseThread([free(0)], null, counts), thread(0));
  assert.deepEqual(chooseThread([free(2), free(1)], null, counts), thread(1));
  assert.deepEqual(chooseThread([free(1)], null, { spread: 4, most: 1 }), thread(0));
  assert.deepEqual(chooseThread([busy(1), busy(1)], null, counts), fresh);
  assert.deepEqual(chooseThread([busy(1), slow(1), busy(2)], null, counts), wait);
});
