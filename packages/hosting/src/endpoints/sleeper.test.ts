/** An instance that is there only while it is wanted, as pure functions. */
import assert from "node:assert/strict";
import { test } from "node:test";
import * as fc from "fast-check";
import { asleep, moveSleeper, requestStep, wakefulMs, type Sleeper, type SleeperEvent } from "./sleeper.ts";

/** The events that may come in a state, of which something else decides. */
function possible(sleeper: Sleeper, nowMs: number): readonly SleeperEvent[] {
  switch (sleeper.at) {
    case "asleep":
    case "failed":
      return [{ kind: "wake" }];
    case "starting":
      return [{ kind: "started" }, { kind: "start-failed", error: new Error("no"), nowMs }];
    case "awake":
      return [{ kind: "sleep" }];
    case "stopping":
      return [{ kind: "stopped" }];
    default:
      throw new Error("no such state");
  }
}

test("whatever happens there is one instance at most, every request is taken on, and each failed start is waited for longer", () => {
  const kinds = ["wake", "started", "start-failed", "sleep", "stopped"] as const;
  fc.assert(
    fc.property(fc.array(fc.tuple(fc.nat(5), fc.nat(100_000)), { maxLength: 60 }), (choices) => {
      let sleeper: Sleeper = asleep;
      let nowMs = 0;
      let instanceCount = 0;
      let restMs = 0;
      for (const [choice, passedMs] of choices) {
        nowMs += passedMs;
        const events = possible(sleeper, nowMs);
        for (const kind of kinds) {
          if (events.some((each) => each.kind === kind)) continue;
          const wrong = { kind, nowMs, error: null } as SleeperEvent;
          assert.throws(() => moveSleeper(sleeper, wrong), new RegExp(`while ${sleeper.at}`));
        }
        for (const hasWaited of [false, true]) {
          const { do: step } = requestStep(sleeper, { nowMs, hasWaited });
          const allowed = {
            asleep: ["wake"],
            starting: ["wait"],
            awake: ["go"],
            stopping: ["wait"],
            failed: ["wake", "fail"],
          };
          assert.ok(allowed[sleeper.at].includes(step), `${step} while ${sleeper.at}`);
          // Who has waited for a start that failed is told so: it does not go from one start to the next.
          if (sleeper.at === "failed" && hasWaited) assert.equal(step, "fail");
        }
        const event = events[choice % events.length];
        assert.ok(event !== undefined);
        if (event.kind === "wake") instanceCount += 1;
        if (event.kind === "start-failed" || event.kind === "stopped") instanceCount -= 1;
        sleeper = moveSleeper(sleeper, event);
        assert.equal(instanceCount, sleeper.at === "asleep" || sleeper.at === "failed" ? 0 : 1);
        if (sleeper.at === "failed") {
          const rest = sleeper.untilMs - nowMs;
          assert.ok(rest >= Math.min(30_000, restMs * 2) && rest >= 1000 && rest <= 30_000);
          restMs = rest;
          const early = requestStep(sleeper, { nowMs: sleeper.untilMs - 1, hasWaited: false });
          assert.deepEqual(
            [early.do, requestStep(sleeper, { nowMs: sleeper.untilMs, hasWaited: false }).do],
            ["fail", "wake"],
          );
        }
        if (sleeper.at === "awake") restMs = 0;
      }
    }),
  );
});

test("it sleeps when nobody has asked for the whole of its time, and never while it is kept or asked", () => {
  const quiet = { isKept: false, callCount: 0, quietSinceMs: 1000 };
  const at = (nowMs: number) => ({ nowMs, idleMs: 500 });
  assert.equal(wakefulMs(quiet, at(1000)), 500);
  assert.equal(wakefulMs(quiet, at(1499)), 1);
  assert.equal(wakefulMs(quiet, at(1500)), 0);
  assert.equal(wakefulMs(quiet, at(9000)), 0);
  assert.equal(wakefulMs({ ...quiet, callCount: 1 }, at(9000)), null);
  assert.equal(wakefulMs({ ...quiet, isKept: true }, at(9000)), null);
});
