import assert from "node:assert/strict";
import { test } from "node:test";
import type { Clock } from "./clock.ts";
import type { Logger } from "./log.ts";
import { retryWrite, type RetryWriteOptions } from "./retry-write.ts";

const full = () => Object.assign(new Error("no space left"), { code: "ENOSPC", syscall: "write" });
const other = () => new Error("no such table");

/** Returns options with pauses that end at once, and records the pauses and the log lines. */
function place(more: Partial<RetryWriteOptions> = {}) {
  const [pausesMs, reported]: [number[], string[]] = [[], []];
  const report = (message: string) => void reported.push(message);
  const logger: Logger = { error: report, warning: report, info: report, verbose: report };
  const over = new AbortController();
  const clock: Clock = {
    epochMs: () => 0,
    monotonicNs: () => 0,
    timer(delayMs, fire) {
      pausesMs.push(delayMs);
      setImmediate(fire);
      return { [Symbol.dispose]() {} };
    },
  };
  const fixed = {
    recordDescription: "the end of a job",
    ownerName: "j",
    retries: "disk faults",
    signal: over.signal,
  } as const;
  let count = 0;
  return {
    pausesMs,
    told: reported,
    over,
    /** Writes with `retryWrite`; the first `failureCount` attempts fail. */
    write: (failureCount: number, failure: () => Error, failed: () => void = () => {}) =>
      retryWrite(
        async () => {
          count += 1;
          if (count > failureCount) return `written at try ${count}`;
          failed();
          throw failure();
        },
        { clock, logger, ...fixed, ...more },
      ),
  };
}

test("a write that fails on a full disk is retried until there is room, with pauses that grow to a limit", async () => {
  const at = place();
  assert.equal(await at.write(7, full), "written at try 8");
  assert.deepEqual(at.pausesMs, [1000, 2000, 4000, 8000, 16_000, 30_000, 30_000]);
  assert.deepEqual(new Set(at.told), new Set(["the end of a job cannot be recorded; retrying"]));
  assert.equal(at.told.length, 7);
  const quick = place({ pauses: { pauseMsMin: 5, pauseMsMax: 8 } });
  await quick.write(3, full);
  assert.deepEqual(quick.pausesMs, [5, 8, 8]);
});

test("an error that is not a disk fault rejects the write, unless all errors are retried", async () => {
  const at = place();
  await assert.rejects(at.write(1, other), /no such table/);
  assert.deepEqual([at.pausesMs, at.told], [[], []]);
  const away = () => Object.assign(new Error("away"), { code: "EDATABASE" });
  assert.equal(await at.write(2, away), "written at try 3");
  const onlyAway = place({ retries: "unreachable database" });
  await assert.rejects(onlyAway.write(1, full));
  assert.equal(await onlyAway.write(2, away), "written at try 3");
  assert.equal(await place({ retries: "every error" }).write(2, other), "written at try 3");
});

test("after an abort, amid an attempt or between two, nothing is retried or reported", async () => {
  const within = place();
  const aborted = within.write(1, full, () => within.over.abort(new Error("over")));
  await assert.rejects(aborted, /over/);
  assert.deepEqual([within.pausesMs, within.told], [[], []]);
  const between = place({
    clock: { epochMs: () => 0, monotonicNs: () => 0, timer: () => ({ [Symbol.dispose]() {} }) },
  });
  const waiting = between.write(1, full, () => setImmediate(() => between.over.abort(new Error("over"))));
  await assert.rejects(waiting, /over/);
  assert.equal(between.told.length, 1);
});
