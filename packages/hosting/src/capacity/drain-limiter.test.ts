import assert from "node:assert/strict";
import { test } from "node:test";
import { SteppedClock } from "@galatea/base/core/stepped-clock-fixture.ts";
import { DrainLimiter } from "./drain-limiter.ts";

const limits = { deletionDrainMsMax: 100, updateDrainMsMax: 1000, updateDrainsMax: 2 };
const open = new AbortController().signal;

/** Returns a drain of instances with a request in flight. It ends when `answer` is called or the drain is aborted. */
function pending() {
  const { promise, resolve } = Promise.withResolvers<void>();
  let state = "held";
  const drain = async (signal: AbortSignal) => {
    const cut = new Promise<void>((cutOff) => signal.addEventListener("abort", () => cutOff(), { once: true }));
    state = await Promise.race([promise.then(() => "answered"), cut.then(() => "cut")]);
  };
  return { drain, answer: resolve, state: () => state };
}

/** Resolves when all immediate consequences of fired timers have run. */
const settled = () => new Promise((resolve) => void setImmediate(resolve));

async function move(clock: SteppedClock, byMs: number): Promise<void> {
  await settled();
  clock.advance(byMs);
  await settled();
}

test("instances of an update may drain longer than instances of a deletion", async () => {
  const clock = new SteppedClock();
  const drainLimiter = new DrainLimiter(clock, limits);
  const [updated, deleted, quick] = [pending(), pending(), pending()];
  const drained = drainLimiter.drainUpdated("a", open, updated.drain);
  const ended = drainLimiter.drainDeleted("b", open, deleted.drain);
  const removed = drainLimiter.drainUpdated("c", open, quick.drain);
  quick.answer();
  await removed;
  for (let count = 0; count < 9; count += 1) await move(clock, 100);
  await ended;
  assert.deepEqual([updated.state(), deleted.state(), quick.state()], ["held", "cut", "answered"]);
  updated.answer();
  await drained;
  assert.equal(updated.state(), "answered");
});

test("a drain ends at its time limit, and when the platform shuts down", async () => {
  const clock = new SteppedClock();
  const drainLimiter = new DrainLimiter(clock, limits);
  const closing = new AbortController();
  const [late, closed] = [pending(), pending()];
  const drained = drainLimiter.drainUpdated("a", open, late.drain);
  await move(clock, 1000);
  await drained;
  const closedDrain = drainLimiter.drainUpdated("a", closing.signal, closed.drain);
  closing.abort();
  await closedDrain;
  assert.deepEqual([late.state(), closed.state()], ["cut", "cut"]);
});

test("a deletion shortens the drains of updates of the same endpoint, and of no other", async () => {
  const clock = new SteppedClock();
  const drainLimiter = new DrainLimiter(clock, limits);
  const [own, other, deleted] = [pending(), pending(), pending()];
  const all = [drainLimiter.drainUpdated("a", open, own.drain), drainLimiter.drainUpdated("b", open, other.drain)];
  const ended = drainLimiter.drainDeleted("a", open, deleted.drain);
  await move(clock, 100);
  await Promise.all([ended, all[0]]);
  assert.deepEqual([own.state(), other.state()], ["cut", "held"]);
  other.answer();
  await all[1];
});

test("when too many instances drain, the oldest ones get the time limit of a deletion", async () => {
  const clock = new SteppedClock();
  const drainLimiter = new DrainLimiter(clock, limits);
  const each = Array.from({ length: 5 }, pending);
  const drains = each.map(({ drain }) => drainLimiter.drainUpdated("a", open, drain));
  await move(clock, 99);
  assert.ok(each.every(({ state }) => state() === "held"));
  await move(clock, 1);
  assert.deepEqual(
    each.map(({ state }) => state()),
    ["cut", "cut", "cut", "held", "held"],
  );
  for (const { answer } of each) answer();
  await Promise.all(drains);
});
