import assert from "node:assert/strict";
import { test } from "node:test";
import { systemClock } from "../../base/index.ts";
import { Traffic } from "./traffic.ts";

/** Which executions of a sequence of instances may leave their worker awake. */
function awakeOnes(coreCount: number, sequence: string): string {
  const traffic = new Traffic(systemClock, coreCount);
  const marks = new Map(Array.from(sequence, (name) => [name, {}]));
  return Array.from(sequence, (name) => (traffic.mayWaitAwake(marks.get(name)!) ? name : ".")).join("");
}

test("on two cores a worker waits awake where its instance executes again and again, not where instances take turns", () => {
  assert.equal(awakeOnes(2, "aaaa"), ".aaa");
  assert.equal(awakeOnes(2, "abcabcabc"), ".........");
  assert.equal(awakeOnes(2, "abbaa"), "..b.a");
});

test("on more cores as many instances as there are beside the event loop's, four at most", () => {
  assert.equal(awakeOnes(4, "abcabc"), "...abc");
  assert.equal(awakeOnes(4, "abcdabcd"), "........");
  assert.equal(awakeOnes(64, "abcdabcd"), "....abcd");
  assert.equal(awakeOnes(64, "abcdeabcde"), "..........");
});
