import assert from "node:assert/strict";
import { test } from "node:test";
import { TaskGroup } from "./task-group.ts";

test("closing aborts the tasks, waits for all of them, and does not report their aborts", async () => {
  const failures: unknown[] = [];
  const ended: string[] = [];
  const group = new TaskGroup((error) => failures.push(error));
  group.run(async (signal) => {
    await new Promise((resolve) => signal.addEventListener("abort", resolve));
    await new Promise(setImmediate);
    ended.push("aborted");
    signal.throwIfAborted();
  });
  group.run(async (signal) => {
    await new Promise((resolve) => signal.addEventListener("abort", resolve));
    group.run(async () => {
      for (let tick = 0; tick < 3; tick++) await new Promise(setImmediate);
      ended.push("started late");
    });
  });
  assert.equal(group.signal.aborted, false);
  await group[Symbol.asyncDispose]();
  assert.deepEqual([ended, failures], [["aborted", "started late"], []]);
});

test("a task that fails is reported, and the others continue", async () => {
  const failures: unknown[] = [];
  const group = new TaskGroup((error) => failures.push((error as Error).message));
  const pending = Promise.withResolvers<void>();
  let hasEnded = false;
  group.run(() => Promise.reject(new Error("broken")));
  group.run(async () => {
    await pending.promise;
    hasEnded = true;
  });
  const settled = group.waitForTasks();
  setImmediate(() => pending.resolve());
  await settled;
  assert.deepEqual([hasEnded, failures, group.signal.aborted], [true, ["broken"], false]);
});

test("a task that fails while the group closes is reported", async () => {
  const failures: unknown[] = [];
  const group = new TaskGroup((error) => failures.push((error as Error).message));
  group.run(async (signal) => {
    await new Promise((resolve) => signal.addEventListener("abort", resolve));
    throw new Error("not put away");
  });
  await group[Symbol.asyncDispose]();
  assert.deepEqual(failures, ["not put away"]);
});
