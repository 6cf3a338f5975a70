import assert from "node:assert/strict";
import { test } from "node:test";
import { RunnerEnded, type RunningTask, CrashBlame } from "./crash-blame.ts";

const acquired: RunningTask = { closed: Promise.resolve(), isUnread: false };
const untaken: RunningTask = { closed: Promise.resolve(), isUnread: true };
const end = new RunnerEnded("none", "signal SIGFPE");
const [one, other] = [{}, {}];

/** Returns the blame of each task after the process has ended. */
function blames(under: readonly (readonly [object, RunningTask])[], accused: object | null = null): string[] {
  const suspects = new CrashBlame();
  for (const [task, suspect] of under) suspects.start(task, suspect);
  if (accused !== null) suspects.accuse(accused);
  suspects.ended("signal SIGFPE");
  return under.map(([task]) => (suspects.blamed(end, task) as RunnerEnded).blame);
}

test("a single task of a crashed process is to blame; of several tasks each is a suspect", () => {
  assert.deepEqual(blames([[one, acquired]]), ["certain"]);
  assert.deepEqual(
    blames([
      [one, acquired],
      [other, acquired],
    ]),
    ["possible", "possible"],
  );
});

test("a task that had not started cannot be the cause, so the other one is the only candidate", () => {
  assert.deepEqual(
    blames([
      [one, untaken],
      [other, acquired],
    ]),
    ["none", "certain"],
  );
});

test("if a process was killed because of one task, all others are innocent", () => {
  assert.deepEqual(
    blames(
      [
        [one, acquired],
        [other, acquired],
      ],
      other,
    ),
    ["none", "certain"],
  );
});

test("a finished task is no suspect, and an error without a crash stays as it is", () => {
  const suspects = new CrashBlame();
  suspects.start(one, acquired);
  suspects.start(other, acquired);
  suspects.end(one);
  const error = new Error("no shape");
  assert.equal(suspects.blamed(end, other), end);
  suspects.ended("signal SIGFPE");
  assert.equal((suspects.blamed(end, other) as RunnerEnded).blame, "certain");
  assert.equal(suspects.blamed(error, other), error);
});
