import assert from "node:assert/strict";
import { test } from "node:test";
import type { Clock } from "@galatea/base";
import { RunQueue } from "./run-queue.ts";

/** A manual clock. */
function handClock() {
  let nowMs = 0;
  const timers = new Set<{ atMs: number; fire: () => void }>();
  const clock: Clock = {
    epochMs: () => nowMs,
    monotonicNs: () => nowMs * 1e6,
    timer(delayMs, fire) {
      const timer = { atMs: nowMs + delayMs, fire };
      timers.add(timer);
      return { [Symbol.dispose]: () => void timers.delete(timer) };
    },
  };
  const pass = (ms: number) => {
    nowMs += ms;
    for (const timer of timers) {
      if (timer.atMs > nowMs) continue;
      timers.delete(timer);
      timer.fire();
    }
  };
  return { clock, pass };
}

const limits = { slotCount: 1, longNs: 100e6, modelRunsMax: 2, tenantRunsMax: 2, runsMax: 4 };

const owner = (tenant: number) => ({ tenant, model: "m" });

/** Records the runs that were admitted, and keeps the disposables that end them. */
function book(queue: RunQueue) {
  const admitted: number[] = [];
  const held = new Map<number, Disposable>();
  const enter = async (tenant: number) => {
    held.set(tenant, await queue.enter(owner(tenant), null));
    admitted.push(tenant);
  };
  return {
    admitted,
    enter: (tenant: number) => void enter(tenant),
    leave: (tenant: number) => held.get(tenant)![Symbol.dispose](),
  };
}

const settled = () => new Promise<void>((resolve) => setImmediate(resolve));

test("a run that becomes long frees its slot for the next without ending", async () => {
  const { clock, pass } = handClock();
  const queue = new RunQueue(limits, clock);
  const { admitted, enter } = book(queue);
  enter(1);
  enter(2);
  await settled();
  assert.deepEqual(admitted, [1]);
  pass(100);
  await settled();
  assert.deepEqual(admitted, [1, 2]);
});

test("tenants are served in order of the run time that each has used", async () => {
  const { clock, pass } = handClock();
  const queue = new RunQueue(limits, clock);
  const { admitted, enter, leave } = book(queue);
  enter(1);
  await settled();
  for (const tenant of [1, 2, 3]) enter(tenant);
  pass(50);
  leave(1);
  await settled();
  pass(10);
  leave(2);
  await settled();
  pass(10);
  leave(3);
  await settled();
  assert.deepEqual(admitted, [1, 2, 3, 1]);
});

for (const doesGiveUp of [false, true]) {
  const others = doesGiveUp ? ", and its cost is kept when another of its requests is aborted" : "";
  test(`a tenant is charged the time from its admission to its end${others}`, async () => {
    const { clock, pass } = handClock();
    const queue = new RunQueue(limits, clock);
    const { admitted, enter, leave } = book(queue);
    enter(1);
    await settled();
    const disconnected = new AbortController();
    if (doesGiveUp) queue.enter(owner(1), disconnected.signal).catch(() => {});
    disconnected.abort();
    enter(2);
    pass(50);
    leave(1);
    await settled();
    for (const tenant of [1, 2]) enter(tenant);
    pass(10);
    leave(2);
    await settled();
    leave(2);
    await settled();
    assert.deepEqual(admitted, [1, 2, 2, 1]);
  });
}

test("an aborted waiter leaves the queue, and one with an aborted signal never enters it", async () => {
  const { clock } = handClock();
  const runQueue = new RunQueue(limits, clock);
  const first = await runQueue.enter(owner(1), null);
  const controller = new AbortController();
  const waiting = runQueue.enter(owner(2), controller.signal);
  assert.equal(runQueue.waitingCount, 1);
  controller.abort();
  await assert.rejects(waiting, { code: "CANCELLED" });
  await assert.rejects(runQueue.enter(owner(3), AbortSignal.abort()), { code: "CANCELLED" });
  assert.equal(runQueue.waitingCount, 0);
  first[Symbol.dispose]();
  first[Symbol.dispose]();
  (await runQueue.enter(owner(2), null))[Symbol.dispose]();
});
