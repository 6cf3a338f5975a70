import assert from "node:assert/strict";
import { test } from "node:test";
import { containerLossesMax, nextAsyncState, type AsyncEvent, type AsyncState } from "./async-invocation.ts";

const failure = { reason: "r", text: "t" };
const waiting: AsyncState = { at: "waiting", lostCount: 0 };
const running: AsyncState = { at: "running", lostCount: 1, sinceMs: 5 };
const lives: readonly AsyncState[] = [
  waiting,
  running,
  { at: "completed" },
  { at: "failed", failure },
  { at: "expired" },
];

const rows: readonly { readonly from: AsyncState["at"]; readonly event: AsyncEvent; readonly to: AsyncState }[] = [
  {
    from: "waiting",
    event: { kind: "taken", nowMs: 5, expiresMs: 6 },
    to: { at: "running", lostCount: 0, sinceMs: 5 },
  },
  { from: "waiting", event: { kind: "taken", nowMs: 6, expiresMs: 6 }, to: { at: "expired" } },
  { from: "running", event: { kind: "answered" }, to: { at: "completed" } },
  { from: "running", event: { kind: "refused", failure }, to: { at: "failed", failure } },
  { from: "running", event: { kind: "lost", failure }, to: { at: "waiting", lostCount: 2 } },
  { from: "running", event: { kind: "interrupted" }, to: { at: "waiting", lostCount: 1 } },
];

for (const { from, event, to } of rows) {
  test(`the event ${event.kind} takes a request from ${from} to ${to.at}, and is an error in other states`, () => {
    for (const state of lives) {
      if (state.at === from) assert.deepEqual(nextAsyncState(state, event), to);
      else assert.throws(() => nextAsyncState(state, event), /^Error: bug: /);
    }
  });
}

test("an asynchronous request fails after too many lost containers, and when its endpoint is deleted", () => {
  const last: AsyncState = { at: "running", lostCount: containerLossesMax - 1, sinceMs: 5 };
  assert.deepEqual(nextAsyncState(last, { kind: "lost", failure }), { at: "failed", failure });
  assert.equal(nextAsyncState(waiting, { kind: "orphaned" }).at, "failed");
  assert.throws(() => nextAsyncState(running, { kind: "orphaned" }), /bug/);
});
