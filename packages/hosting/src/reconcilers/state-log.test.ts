import assert from "node:assert/strict";
import { test } from "node:test";
import { createLogger, systemClock } from "@galatea/base";
import { StateLog } from "./state-log.ts";

function openLog() {
  const lines: string[] = [];
  const logger = createLogger((level, message) => lines.push(`${level} ${message}`));
  const due: (() => void)[] = [];
  const timer = (_delayMs: number, fire: () => void) => {
    due.push(fire);
    return { [Symbol.dispose]() {} };
  };
  const log = new StateLog({ clock: { ...systemClock, timer }, logger });
  const lastWindow = () => due.splice(0).forEach((fire) => fire());
  return { lines, log, lastWindow };
}

const entered = { what: "endpoint", name: "mine", at: "Creating", tookMs: null, reason: null };

test("a log line has the record's name, its state and the elapsed seconds; a failure is a warning with its reason", () => {
  const { lines, log } = openLog();
  log.entered(entered);
  log.entered({ ...entered, at: "InService", tookMs: 2345 });
  log.entered({ ...entered, at: "Failed", tookMs: 120_000, reason: "The image is unknown." });
  assert.deepEqual(lines, [
    "info endpoint 'mine' is Creating",
    "info endpoint 'mine' is InService after 2.3 s",
    "warning endpoint 'mine' is Failed after 120.0 s: The image is unknown.",
  ]);
});

test("ten thousand changes at once are logged as 20 lines of each level and a count of the rest", () => {
  const { lines, log, lastWindow } = openLog();
  for (let count = 0; count < 10_000; count++) {
    log.entered({ ...entered, at: count % 2 === 0 ? "Creating" : "InService" });
    if (count % 100 === 0) log.entered({ ...entered, at: "Failed", reason: "no" });
  }
  assert.equal(lines.length, 40);
  lastWindow();
  const rest = "more changes of state than the 20 that are logged one by one each second:";
  assert.deepEqual(lines.slice(40), [
    `info ${rest} endpoint Creating: 4990, endpoint InService: 4990`,
    `warning ${rest} endpoint Failed: 80`,
  ]);
  log.entered(entered);
  assert.equal(lines.length, 43);
});

test("disposing a state log writes the pending counts", () => {
  const { lines, log } = openLog();
  for (let count = 0; count < 21; count++) log.entered(entered);
  log[Symbol.dispose]();
  assert.match(lines.at(-1) ?? "", /: endpoint Creating: 1$/);
});
