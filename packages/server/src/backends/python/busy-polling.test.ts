import assert from "node:assert/strict";
import { test } from "node:test";
import { setImmediate } from "node:timers/promises";
import { systemClock } from "@galatea/base";
import { BusyPolling } from "./busy-polling.ts";

/** Shows a sequence of executing instances: the name of each whose worker may poll, and "." for the others. */
function awakeOnes(coreCount: number, sequence: string): string {
  const busyPolling = new BusyPolling(systemClock, coreCount);
  const marks = new Map(Array.from(sequence, (name) => [name, {}]));
  return Array.from(sequence, (name) => (busyPolling.mayPoll(marks.get(name)!) ? name : ".")).join("");
}

test("on two cores a worker polls if one instance executes repeatedly, not if instances alternate", () => {
  assert.equal(awakeOnes(2, "aaaa"), ".aaa");
  assert.equal(awakeOnes(2, "abcabcabc"), ".........");
  assert.equal(awakeOnes(2, "abbaa"), "..b.a");
});

test("on more cores as many instances poll as there are cores beside the event loop's, four at most", () => {
  assert.equal(awakeOnes(4, "abcabc"), "...abc");
  assert.equal(awakeOnes(4, "abcdabcd"), "........");
  assert.equal(awakeOnes(64, "abcdabcd"), "....abcd");
  assert.equal(awakeOnes(64, "abcdeabcde"), "..........");
});

test("polling yields once nothing has started or ended for a while, and then stops", async () => {
  let nowNs = 0;
  let givenWay = 0;
  const busyPolling = new BusyPolling({ ...systemClock, monotonicNs: () => nowNs }, 2, () => givenWay++);
  /** Counts how often the core is yielded in three event loop ticks, `quietNs` after an execution ended. */
  const turnsAfter = async (quietNs: number) => {
    const before = givenWay;
    nowNs += quietNs;
    for (let tick = 0; tick < 3; tick++) await setImmediate();
    return givenWay - before;
  };
  busyPolling.began(true);
  busyPolling.ended(true);
  assert.equal(await turnsAfter(20_000), 0, "what comes next is about to come");
  assert.ok((await turnsAfter(20_000)) >= 2, "it may be waiting for this processor");
  await turnsAfter(100_000);
  assert.equal(await turnsAfter(0), 0, "the event loop is idle");
});

test("polling stops at once, for a while, if other processes need the core", async () => {
  let nowNs = 0;
  let givenWay = 0;
  const busyPolling = new BusyPolling({ ...systemClock, monotonicNs: () => nowNs }, 2, () => {
    givenWay++;
    // Another process ran for one time slice.
    nowNs += 3_000_000;
  });
  const executed = async (quietNs: number) => {
    busyPolling.began(true);
    busyPolling.ended(true);
    nowNs += quietNs;
    for (let tick = 0; tick < 3; tick++) await setImmediate();
  };
  await executed(40_000);
  assert.equal(givenWay, 1);
  await executed(40_000);
  assert.equal(givenWay, 1, "it does not poll again so soon");
  nowNs += 5_000_000;
  await executed(40_000);
  assert.equal(givenWay, 2);
});

test("while other processes need the cores no worker polls", async () => {
  let nowNs = 0;
  const busyPolling = new BusyPolling({ ...systemClock, monotonicNs: () => nowNs }, 2, () => {
    nowNs += 3_000_000;
  });
  const mark = {};
  busyPolling.mayPoll(mark);
  assert.equal(busyPolling.mayPoll(mark), true);
  busyPolling.began(true);
  busyPolling.ended(true);
  nowNs += 40_000;
  for (let tick = 0; tick < 3; tick++) await setImmediate();
  assert.equal(busyPolling.mayPoll(mark), false);
  nowNs += 5_000_000;
  assert.equal(busyPolling.mayPoll(mark), true);
});
