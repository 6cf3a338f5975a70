import assert from "node:assert/strict";
import { test } from "node:test";
import { ByteBudget } from "@galatea/base";
import { JobMemory } from "./job-memory.ts";

const never = new AbortController().signal;
/** Opens a budget of 200 bytes for all requests, of which jobs may use 100. */
const open = () => {
  const budget = new ByteBudget(200);
  return { budget, memory: new JobMemory(budget) };
};

test("waiting objects get memory in the order of their requests, except that the oldest object never waits", async () => {
  const { memory } = open();
  const [first, second, third] = [memory.open(), memory.open(), memory.open()];
  using _first = first;
  const lease = second.tryHold(90);
  assert.ok(lease !== null);
  assert.equal(third.tryHold(20), null);
  const order: string[] = [];
  const waits = third.hold(20, never).then(() => order.push("third"));
  // The bytes would fit, but the third object has waited longer.
  assert.equal(second.tryHold(5), null);
  const later = second.hold(5, never).then(() => order.push("second"));
  assert.ok(first.tryHold(150) !== null);
  assert.equal(memory.usedBytes, 240);
  first[Symbol.dispose]();
  await new Promise(setImmediate);
  // The second object is the oldest now, so it no longer waits.
  assert.deepEqual(order, ["second"]);
  lease.shrinkTo(10);
  await Promise.all([waits, later]);
  assert.deepEqual(order, ["second", "third"]);
  second[Symbol.dispose]();
  third[Symbol.dispose]();
  assert.equal(memory.usedBytes, 0);
});

test("a job's memory is taken from the budget of all requests and released when its object ends", async () => {
  const { budget, memory } = open();
  {
    using one = memory.open();
    using other = memory.open();
    one.tryHold(60);
    const lease = await other.hold(40, never);
    assert.equal(budget.usedBytes, 100);
    lease.shrinkTo(30);
    lease.shrinkTo(35);
    assert.equal(budget.usedBytes, 90);
  }
  assert.deepEqual([budget.usedBytes, memory.usedBytes], [0, 0]);
});

test("a cancelled wait lets the next object proceed, and memory granted to an ended object is released", async () => {
  const { memory } = open();
  using first = memory.open();
  const second = memory.open();
  using third = memory.open();
  const lease = first.tryHold(90);
  const disconnect = new AbortController();
  const large = second.hold(50, disconnect.signal);
  const small = third.hold(10, never);
  disconnect.abort(new Error("stopped"));
  await assert.rejects(large, /stopped/);
  await small;
  assert.equal(memory.usedBytes, 100);
  const late = second.hold(50, never);
  second[Symbol.dispose]();
  lease?.[Symbol.dispose]();
  await late;
  assert.equal(memory.usedBytes, 10);
});
