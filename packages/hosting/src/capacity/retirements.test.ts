import assert from "node:assert/strict";
import { test } from "node:test";
import { MovedClock } from "@galatea/base/core/moved-clock-fixture.ts";
import { Retirements } from "./retirements.ts";

const limits = { retireMsMax: 100, leaveMsMax: 1000, leavingMax: 2 };
const open = new AbortController().signal;

/** Instances that hold a request until it ends, or nobody waits for it any more. */
function held() {
  const { promise, resolve } = Promise.withResolvers<void>();
  let state = "held";
  const retire = async (signal: AbortSignal) => {
    const cut = new Promise<void>((cutOff) => signal.addEventListener("abort", () => cutOff(), { once: true }));
    state = await Promise.race([promise.then(() => "answered"), cut.then(() => "cut")]);
  };
  return { retire, answer: resolve, state: () => state };
}

/** All that follows at once from what has fired. */
const settled = () => new Promise((resolve) => void setImmediate(resolve));

async function move(clock: MovedClock, byMs: number): Promise<void> {
  await settled();
  clock.move(byMs);
  await settled();
}

test("what an update takes away answers what it holds long after what a deletion takes away is cut off", async () => {
  const clock = new MovedClock();
  const retirements = new Retirements(clock, limits);
  const [updated, deleted, quick] = [held(), held(), held()];
  const left = retirements.leave("a", open, updated.retire);
  const ended = retirements.end("b", open, deleted.retire);
  const gone = retirements.leave("c", open, quick.retire);
  quick.answer();
  await gone;
  for (let count = 0; count < 9; count += 1) await move(clock, 100);
  await ended;
  assert.deepEqual([updated.state(), deleted.state(), quick.state()], ["held", "cut", "answered"]);
  updated.answer();
  await left;
  assert.equal(updated.state(), "answered");
});

test("what has its time is cut off at the bound, and with the platform", async () => {
  const clock = new MovedClock();
  const retirements = new Retirements(clock, limits);
  const closing = new AbortController();
  const [late, closed] = [held(), held()];
  const left = retirements.leave("a", open, late.retire);
  await move(clock, 1000);
  await left;
  const leaving = retirements.leave("a", closing.signal, closed.retire);
  closing.abort();
  await leaving;
  assert.deepEqual([late.state(), closed.state()], ["cut", "cut"]);
});

test("a deletion cuts off what still leaves since an update of the same endpoint, and of no other", async () => {
  const clock = new MovedClock();
  const retirements = new Retirements(clock, limits);
  const [own, other, deleted] = [held(), held(), held()];
  const all = [retirements.leave("a", open, own.retire), retirements.leave("b", open, other.retire)];
  const ended = retirements.end("a", open, deleted.retire);
  await move(clock, 100);
  await Promise.all([ended, all[0]]);
  assert.deepEqual([own.state(), other.state()], ["cut", "held"]);
  other.answer();
  await all[1];
});

test("of many that leave, the oldest have as long as what is deleted", async () => {
  const clock = new MovedClock();
  const retirements = new Retirements(clock, limits);
  const each = Array.from({ length: 5 }, held);
  const left = each.map(({ retire }) => retirements.leave("a", open, retire));
  await move(clock, 99);
  assert.ok(each.every(({ state }) => state() === "held"));
  await move(clock, 1);
  assert.deepEqual(
    each.map(({ state }) => state()),
    ["cut", "cut", "cut", "held", "held"],
  );
  for (const { answer } of each) answer();
  await Promise.all(left);
});
