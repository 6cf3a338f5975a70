import assert from "node:assert/strict";
import { mock, test } from "node:test";
import { systemClock } from "./clock.ts";

test("a timer fires when its time has come, also beyond what Node's own can count", () => {
  mock.timers.enable({ apis: ["setTimeout"] });
  try {
    const fired: string[] = [];
    systemClock.timer(10, () => fired.push("soon"));
    systemClock.timer(2 ** 31 + 5, () => fired.push("late"));
    const never = systemClock.timer(2 ** 33, () => fired.push("never"));
    mock.timers.tick(10);
    assert.deepEqual(fired, ["soon"]);
    mock.timers.tick(2 ** 31 - 11);
    assert.deepEqual(fired, ["soon"]);
    mock.timers.tick(6);
    assert.deepEqual(fired, ["soon", "late"]);
    never[Symbol.dispose]();
    for (let count = 0; count < 5; count++) mock.timers.tick(2 ** 31 - 1);
    assert.deepEqual(fired, ["soon", "late"]);
  } finally {
    mock.timers.reset();
  }
});
