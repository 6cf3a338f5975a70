import assert from "node:assert/strict";
import { test } from "node:test";
import { systemClock, type InferenceError } from "@galatea/base";
import type { CallingExecution, RequestCaller } from "../inference/index.ts";
import { CallGraph, findDeadlock, type NestedCall } from "./call-graph.ts";

const a = { name: "a" };
const b = { name: "b" };
const execution = (
  owner: { name: string },
  { holdsInstance = true, callers = [] as readonly RequestCaller[] } = {},
): CallingExecution => ({
  owner,
  modelName: owner.name,
  depth: 1,
  deadlineNs: Number.POSITIVE_INFINITY,
  executionMsMax: null,
  callers: new Set(callers),
  holdsInstance,
});
const call = (by: CallingExecution, target: { name: string }, more: Partial<NestedCall> = {}): NestedCall => ({
  caller: { execution: by },
  target,
  targetName: target.name,
  instanceCount: 1,
  isQueued: true,
  isStreamed: false,
  ...more,
});

test("a model with one instance that calls itself waits for itself", () => {
  const calls = [call(execution(a), a)];
  assert.deepEqual(findDeadlock(calls), calls);
  assert.deepEqual(findDeadlock([call(execution(a), a, { instanceCount: 2 })]), []);
});

test("in the cycle a, b, a the execution of b waits for itself", () => {
  const first = call(execution(a), b, { isQueued: false });
  const second = call(execution(b, { callers: [first.caller] }), a);
  assert.deepEqual(findDeadlock([first, second]), [first, second]);
  // The call was handed to b's worker in advance. It waits there for an execution that does not serve it.
  const other = call(execution(b), a);
  assert.deepEqual(findDeadlock([first, other]), [first, other]);
  // A stream may still get responses, and a second instance may execute the call.
  assert.deepEqual(findDeadlock([{ ...first, isStreamed: true }, other]), []);
  assert.deepEqual(findDeadlock([{ ...first, instanceCount: 2 }, other]), []);
  assert.deepEqual(findDeadlock([first, { ...second, instanceCount: 2 }]), []);
});

test("two requests that each hold the instance that the other needs wait for each other, and no other request is involved", () => {
  const c = { name: "c" };
  const knot = [call(execution(a), b), call(execution(b), a)];
  const other = call(execution(c), { name: "d" });
  assert.deepEqual(findDeadlock([other, ...knot]), knot);
});

test("an execution is not deadlocked while one of its calls makes progress", () => {
  const caller = execution(a);
  assert.deepEqual(findDeadlock([call(caller, a), call(caller, b, { isQueued: false })]), []);
});

test("an execution without an instance blocks no other execution", () => {
  assert.deepEqual(findDeadlock([call(execution(a, { holdsInstance: false }), a)]), []);
});

test("the youngest call of a deadlock fails when the deadlock is seen twice, and a call that ended in between does not fail", () => {
  const timers: (() => void)[] = [];
  const clock = {
    ...systemClock,
    timer: (_delayMs: number, fire: () => void) => {
      timers.push(fire);
      return { [Symbol.dispose]: () => {} };
    },
  };
  const graph = new CallGraph(clock);
  const older = graph.begin(call(execution(a), b));
  const younger = graph.begin(call(execution(b), a));
  timers.shift()!();
  assert.equal(younger.signal.aborted, false);
  timers.shift()!();
  const error = younger.signal.reason as InferenceError;
  assert.equal(error.code, "UNAVAILABLE");
  assert.match(error.message, /^model 'b' waits for 'a'/);
  younger[Symbol.dispose]();
  timers.shift()!();
  timers.shift()!();
  assert.equal(older.signal.aborted, false);
  older[Symbol.dispose]();
  timers.shift()!();
  assert.equal(timers.length, 0);
});
