/** Tests of the states of a serverless variant's only instance, as pure functions. */
import assert from "node:assert/strict";
import { test } from "node:test";
import * as fc from "fast-check";
import {
  coldState,
  nextServerlessState,
  nextRequestStep,
  msUntilIdleStop,
  type ServerlessState,
  type ServerlessEvent,
} from "./serverless-state.ts";

/** Returns the events that may occur in a state. */
function possible(state: ServerlessState, nowMs: number): readonly ServerlessEvent[] {
  switch (state.at) {
    case "cold":
    case "failed":
      return [{ kind: "start" }];
    case "starting":
      return [{ kind: "started" }, { kind: "start-failed", error: new Error("no"), nowMs }];
    case "running":
      return [{ kind: "stop" }];
    case "stopping":
      return [{ kind: "stopped" }];
    default:
      throw new Error("no such state");
  }
}

test("property: a serverless variant has at most one instance, handles every request, and waits longer after each failed start", () => {
  const kinds = ["start", "started", "start-failed", "stop", "stopped"] as const;
  fc.assert(
    fc.property(fc.array(fc.tuple(fc.nat(5), fc.nat(100_000)), { maxLength: 60 }), (choices) => {
      let state: ServerlessState = coldState;
      let nowMs = 0;
      let instanceCount = 0;
      let restMs = 0;
      for (const [choice, passedMs] of choices) {
        nowMs += passedMs;
        const events = possible(state, nowMs);
        for (const kind of kinds) {
          if (events.some((each) => each.kind === kind)) continue;
          const wrong = { kind, nowMs, error: null } as ServerlessEvent;
          assert.throws(() => nextServerlessState(state, wrong), new RegExp(`while ${state.at}`));
        }
        for (const hasWaited of [false, true]) {
          const { do: step } = nextRequestStep(state, { nowMs, hasWaited });
          const allowed = {
            cold: ["start"],
            starting: ["wait"],
            running: ["go"],
            stopping: ["wait"],
            failed: ["start", "fail"],
          };
          assert.ok(allowed[state.at].includes(step), `${step} while ${state.at}`);
          // A request that waited for a start fails if the start fails. It does not wait for another start.
          if (state.at === "failed" && hasWaited) assert.equal(step, "fail");
        }
        const event = events[choice % events.length];
        assert.ok(event !== undefined);
        if (event.kind === "start") instanceCount += 1;
        if (event.kind === "start-failed" || event.kind === "stopped") instanceCount -= 1;
        state = nextServerlessState(state, event);
        assert.equal(instanceCount, state.at === "cold" || state.at === "failed" ? 0 : 1);
        if (state.at === "failed") {
          const rest = state.untilMs - nowMs;
          assert.ok(rest >= Math.min(30_000, restMs * 2) && rest >= 1000 && rest <= 30_000);
          restMs = rest;
          const early = nextRequestStep(state, { nowMs: state.untilMs - 1, hasWaited: false });
          assert.deepEqual(
            [early.do, nextRequestStep(state, { nowMs: state.untilMs, hasWaited: false }).do],
            ["fail", "start"],
          );
        }
        if (state.at === "running") restMs = 0;
      }
    }),
  );
});

test("a serverless instance stops after its idle time, and never while it has requests or is kept running", () => {
  const quiet = { isKept: false, callCount: 0, quietSinceMs: 1000 };
  const at = (nowMs: number) => ({ nowMs, idleMs: 500 });
  assert.equal(msUntilIdleStop(quiet, at(1000)), 500);
  assert.equal(msUntilIdleStop(quiet, at(1499)), 1);
  assert.equal(msUntilIdleStop(quiet, at(1500)), 0);
  assert.equal(msUntilIdleStop(quiet, at(9000)), 0);
  assert.equal(msUntilIdleStop({ ...quiet, callCount: 1 }, at(9000)), null);
  assert.equal(msUntilIdleStop({ ...quiet, isKept: true }, at(9000)), null);
});
