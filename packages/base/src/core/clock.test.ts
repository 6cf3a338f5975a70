import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { getEventListeners } from "node:events";
import { promisify } from "node:util";
import { mock, test } from "node:test";
import { delay, systemClock, type Clock } from "./clock.ts";
import { testTimeoutMs } from "./eventually-fixture.ts";

test("a timer fires on time, also after more milliseconds than a Node timer can hold", () => {
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

test("a delay ends once, by its time or its signal, and leaves neither a timer nor a listener", async () => {
  const timers = new Set<() => void>();
  const clock: Clock = {
    ...systemClock,
    timer: (_delayMs, fire) => {
      timers.add(fire);
      return { [Symbol.dispose]: () => void timers.delete(fire) };
    },
  };
  const { signal } = new AbortController();
  const waited = delay(clock, 10, signal);
  assert.equal(getEventListeners(signal, "abort").length, 1);
  for (const fire of timers) fire();
  await waited;
  assert.deepEqual([timers.size, getEventListeners(signal, "abort").length], [0, 0]);

  const disconnect = new AbortController();
  const left = delay(clock, 10, disconnect.signal);
  disconnect.abort(new Error("gone"));
  await assert.rejects(left, { message: "gone" });
  assert.deepEqual([timers.size, getEventListeners(disconnect.signal, "abort").length], [0, 0]);
  await assert.rejects(delay(clock, 10, disconnect.signal), { message: "gone" });
  assert.equal(timers.size, 0);
});

test("a timer does not keep the process alive, a delay does until it ends", async () => {
  const clock = JSON.stringify(new URL("clock.ts", import.meta.url).href);
  const run = (code: string) => {
    const args = ["--input-type=module", "-e", `import * as clock from ${clock}; ${code}`];
    return promisify(execFile)(process.execPath, args, { timeout: testTimeoutMs });
  };
  await run("clock.systemClock.timer(60_000, () => {})");
  const { stdout } = await run("await clock.delay(clock.systemClock, 20, null); console.log('waited')");
  assert.equal(stdout, "waited\n");
});
