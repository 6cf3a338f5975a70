import assert from "node:assert/strict";
import { test } from "node:test";
import type { DeviceBytes } from "../backends/index.ts";
import { MemoryBudget } from "./memory-budget.ts";

const owner = () => ({ namespace: "n" });
const cost = (guess: DeviceBytes) => ({ known: null, contentKey: "", guess });

test("each device has its own budget, and a load that exceeds one of them charges none", () => {
  const budget = new MemoryBudget(
    new Map([
      ["machine", 100],
      ["gpu 0", 50],
    ]),
    10,
  );
  const first = owner();
  budget.reserve(
    first,
    "a",
    cost(
      new Map([
        ["machine", 60],
        ["gpu 0", 40],
      ]),
    ),
  );
  const greedy = cost(
    new Map([
      ["machine", 10],
      ["gpu 0", 20],
    ]),
  );
  assert.throws(() => budget.reserve(owner(), "b", greedy), {
    code: "UNAVAILABLE",
    reason: "out-of-memory",
    message:
      /^Out of memory: b needs about 20 bytes of gpu 0, 40 of the budget of 50 bytes are in use\. Unload other models, or place some on another GPU\.$/,
  });
  assert.deepEqual([budget.usedBytes("machine"), budget.usedBytes("gpu 0")], [60, 40]);
  budget.reserve(
    owner(),
    "c",
    cost(
      new Map([
        ["machine", 40],
        ["gpu 1", 1e12],
      ]),
    ),
  );
  budget.release(first);
  assert.deepEqual(
    [budget.usedBytes("machine"), budget.usedBytes("gpu 0"), budget.usedBytesOf("n", "gpu 1")],
    [40, 0, 1e12],
  );
});

test("a measured cost replaces the estimate on every device, and is charged for the same content at the next load", () => {
  const budget = new MemoryBudget(new Map([["machine", 100]]), 10);
  const first = owner();
  budget.reserve(first, "a", {
    known: null,
    contentKey: "k",
    guess: new Map([
      ["machine", 90],
      ["gpu 0", 9],
    ]),
  });
  budget.setMeasured(first, "a", "k", new Map([["machine", 30]]));
  assert.deepEqual([budget.usedBytes("machine"), budget.usedBytes("gpu 0")], [30, 0]);
  budget.reserve(owner(), "b", { known: null, contentKey: "k", guess: new Map([["machine", 90]]) });
  assert.equal(budget.usedBytes("machine"), 60);
  budget.correct(
    first,
    new Map([
      ["machine", 80],
      ["gpu 0", 5],
    ]),
  );
  assert.deepEqual([budget.usedBytes("machine"), budget.usedBytes("gpu 0")], [110, 5]);
});
