import assert from "node:assert/strict";
import { test } from "node:test";
import * as fc from "fast-check";
import type { AlarmState, Suppression } from "./alarm.ts";
import { nextSuppression } from "./suppression.ts";

const suppressor = { waitMs: 60_000, extensionMs: 30_000 };

/**
 * Returns the results of a sequence of evaluations. Each evaluation has a time, the alarm's state, and whether the
 * suppressor is in ALARM. Each result is a suppression or an action.
 */
function story(
  looks: readonly (readonly [second: number, state: AlarmState, isSuppressing: boolean])[],
  periods = suppressor,
) {
  let [held, before]: [Suppression | null, AlarmState] = [null, "OK"];
  return looks.map(([second, state, isSuppressing]) => {
    const found = nextSuppression(held, { suppressor: periods, isSuppressing, state, before, nowMs: second * 1000 });
    held = found.suppression;
    before = state;
    return found.acts ? `acts on ${state}` : (held?.by ?? "nothing");
  });
}

test("actions run after the wait period when the suppressor does not go into ALARM", () => {
  assert.deepEqual(
    story([
      [0, "OK", false],
      [10, "ALARM", false],
      [60, "ALARM", false],
      [70, "ALARM", false],
      [80, "ALARM", false],
    ]),
    ["nothing", "WaitPeriod", "WaitPeriod", "acts on ALARM", "nothing"],
  );
});

test("a suppressor that goes into ALARM during the wait period suppresses actions until the extension period ends", () => {
  assert.deepEqual(
    story([
      [10, "ALARM", false],
      [20, "ALARM", true],
      [500, "ALARM", true],
      [510, "ALARM", false],
      [530, "ALARM", false],
      [540, "ALARM", false],
      [550, "ALARM", false],
    ]),
    ["WaitPeriod", "Alarm", "Alarm", "ExtensionPeriod", "ExtensionPeriod", "acts on ALARM", "nothing"],
  );
});

test("a state that begins and ends while actions are suppressed runs no action", () => {
  assert.deepEqual(
    story([
      [0, "OK", true],
      [10, "ALARM", true],
      [20, "OK", true],
      [30, "OK", false],
      [60, "OK", false],
    ]),
    ["Alarm", "Alarm", "Alarm", "ExtensionPeriod", "nothing"],
  );
  assert.deepEqual(
    story([
      [10, "ALARM", false],
      [20, "OK", false],
      [70, "OK", false],
    ]),
    ["WaitPeriod", "WaitPeriod", "nothing"],
  );
});

test("a state that begins during the extension period runs its actions when the period ends", () => {
  assert.deepEqual(
    story([
      [0, "OK", true],
      [10, "OK", false],
      [20, "ALARM", false],
      [40, "ALARM", false],
    ]),
    ["Alarm", "ExtensionPeriod", "ExtensionPeriod", "acts on ALARM"],
  );
});

test("without periods an alarm's actions run at once, and again when its suppressor leaves ALARM", () => {
  const none = { waitMs: 0, extensionMs: 0 };
  assert.deepEqual(
    story(
      [
        [10, "ALARM", false],
        [20, "OK", true],
        [30, "OK", false],
      ],
      none,
    ),
    ["acts on ALARM", "Alarm", "acts on OK"],
  );
});

test("property: actions never run while the suppressor is in ALARM nor twice for one state, and finally run for the last state", () => {
  const look = fc.record({
    state: fc.constantFrom<AlarmState>("OK", "ALARM"),
    isSuppressing: fc.boolean(),
    afterMs: fc.nat(50_000),
  });
  fc.assert(
    fc.property(fc.array(look, { maxLength: 40 }), (looks) => {
      let [held, before, acted]: [Suppression | null, AlarmState, AlarmState] = [null, "OK", "OK"];
      let nowMs = 0;
      const lasting = { state: looks.at(-1)?.state ?? "OK", isSuppressing: false, afterMs: 100_000 } as const;
      for (const { state, isSuppressing, afterMs } of [...looks, lasting, lasting, lasting]) {
        nowMs += afterMs;
        const found = nextSuppression(held, { suppressor, isSuppressing, state, before, nowMs });
        assert(!(found.acts && isSuppressing));
        if (found.acts) {
          assert.notEqual(state, acted);
          acted = state;
        }
        held = found.suppression;
        before = state;
      }
      assert.deepEqual([held, acted], [null, lasting.state]);
    }),
  );
});
