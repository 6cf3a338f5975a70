import assert from "node:assert/strict";
import { test } from "node:test";
import { setImmediate as turn } from "node:timers/promises";
import { TaskGroup, type Clock } from "@galatea/base";
import { ConcurrencySampler, concurrencySampleMs } from "./concurrency-sampler.ts";

test("a ConcurrencySampler samples while requests are in flight and a few times afterwards, and restarts with the next request", async () => {
  const timers = new Set<() => void>();
  const clock: Clock = {
    epochMs: () => 0,
    monotonicNs: () => 0,
    timer(delayMs, fire) {
      assert.equal(delayMs, concurrencySampleMs);
      timers.add(fire);
      return { [Symbol.dispose]: () => timers.delete(fire) };
    },
  };
  await using tasks = new TaskGroup((error) => assert.fail(String(error)));
  const seen: number[] = [];
  let count = 0;
  const sampler = new ConcurrencySampler({ count: () => count, record: (found) => seen.push(found), tasks, clock });
  const look = async () => {
    for (const fire of timers) fire();
    await turn();
  };
  assert.equal(timers.size, 0, "no sample is due before the first request");
  count = 2;
  sampler.touch();
  sampler.touch();
  assert.equal(timers.size, 1);
  await look();
  count = 0;
  await look();
  count = 1;
  await look();
  count = 0;
  for (let index = 0; index < 10; index++) await look();
  assert.deepEqual(seen, [2, 0, 1, 0, 0, 0, 0]);
  assert.equal(timers.size, 0);
  sampler.touch();
  await look();
  assert.equal(seen.length, 8);
});
