import assert from "node:assert/strict";
import { getEventListeners } from "node:events";
import { test } from "node:test";
import type { Clock } from "../clock.ts";
import { openDeadline } from "./deadline.ts";

/** Returns a clock with one timer, which fires when the test calls `fire`. */
function openClock(): { readonly clock: Clock; readonly fire: () => void; readonly isSet: () => boolean } {
  let pending: (() => void) | null = null;
  const clock: Clock = {
    epochMs: () => 0,
    monotonicNs: () => 0,
    timer(_, fire) {
      pending = fire;
      return { [Symbol.dispose]: () => void (pending = null) };
    },
  };
  return { clock, fire: () => pending?.(), isSet: () => pending !== null };
}

test("a deadline aborts at its time with the given reason", () => {
  const { clock, fire } = openClock();
  using deadline = openDeadline({ clock, afterMs: 5, signal: null, createError: () => new RangeError("too late") });
  assert.deepEqual([deadline.signal.aborted, deadline.hasExpired], [false, false]);
  fire();
  assert.ok(deadline.signal.reason instanceof RangeError);
  assert.equal(deadline.hasExpired, true);
});

test("a deadline aborts with its outer signal, and is not reported as expired", () => {
  const { clock, fire } = openClock();
  const outer = new AbortController();
  using deadline = openDeadline({ clock, afterMs: 5, signal: outer.signal });
  outer.abort("left");
  fire();
  assert.deepEqual([deadline.signal.reason, deadline.hasExpired], ["left", false]);
});

test("a deadline opened with an aborted signal is aborted at once", () => {
  const { clock } = openClock();
  using deadline = openDeadline({ clock, afterMs: 5, signal: AbortSignal.abort("left") });
  assert.equal(deadline.signal.reason, "left");
});

test("a deadline that was disposed holds neither a timer nor the outer signal", () => {
  const { clock, isSet } = openClock();
  const outer = new AbortController();
  const deadline = openDeadline({ clock, afterMs: 5, signal: outer.signal });
  assert.deepEqual([isSet(), getEventListeners(outer.signal, "abort").length], [true, 1]);
  deadline[Symbol.dispose]();
  assert.deepEqual([isSet(), getEventListeners(outer.signal, "abort").length], [false, 0]);
  outer.abort();
  assert.equal(deadline.signal.aborted, false);
});
