import assert from "node:assert/strict";
import { test } from "node:test";
import { silentLogger, type Clock } from "@galatea/base";
import { pruneLogsPeriodically } from "./log-upkeep.ts";

test("logs are pruned a minute after a start and every hour, also after a failed attempt", async () => {
  const waits: number[] = [];
  const over = new AbortController();
  const clock: Clock = {
    epochMs: () => 0,
    monotonicNs: () => 0,
    timer(afterMs, fire) {
      waits.push(afterMs);
      setImmediate(fire);
      return { [Symbol.dispose]() {} };
    },
  };
  let count = 0;
  const prune = async () => {
    count += 1;
    if (count === 3) over.abort(new Error("over"));
    throw new Error("the disk is full");
  };
  await assert.rejects(pruneLogsPeriodically({ prune }, { clock, logger: silentLogger }, over.signal), /over/);
  assert.deepEqual([count, waits], [3, [60_000, 3_600_000, 3_600_000]]);
});
