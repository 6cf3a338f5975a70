import assert from "node:assert/strict";
import { test } from "node:test";
import * as fc from "fast-check";
import { CrashRecord } from "./crash-record.ts";

const limits = { isolateAfter: 2, refusedAfter: 4, forgetMs: 1000, contentsMax: 3 };

test("content that crashes runs first shared, then isolated, then is rejected, and is readmitted step by step", () => {
  const record = new CrashRecord(limits);
  const seen: string[] = [];
  for (let crash = 0; crash < 5; crash += 1) {
    seen.push(record.verdict("a", 0));
    record.crashed("a", 0);
  }
  assert.deepEqual(seen, ["shared", "shared", "apart", "apart", "refused"]);
  assert.equal(record.verdict("b", 0), "shared");
  assert.deepEqual(
    [999, 1000, 2000, 3000].map((ms) => record.verdict("a", ms)),
    ["refused", "apart", "apart", "shared"],
  );
});

test("forgotten content takes no memory, and the number of recorded contents is limited", () => {
  const record = new CrashRecord(limits);
  for (const key of ["a", "b", "c", "d"]) record.crashed(key, 0);
  assert.equal(record.size, 3);
  assert.equal(record.countOf("a", 0), 0);
  for (const key of ["b", "c", "d"]) record.countOf(key, 1000);
  assert.equal(record.size, 0);
});

test("property: the count equals a list of crashes from which each quiet period removes one", () => {
  const event = fc.record({ key: fc.constantFrom("a", "b"), passesMs: fc.nat(2500), crashes: fc.boolean() });
  fc.assert(
    fc.property(fc.array(event, { maxLength: 40 }), (events) => {
      const record = new CrashRecord(limits);
      const model = new Map<string, { count: number; atMs: number }>();
      let nowMs = 0;
      for (const { key, passesMs, crashes } of events) {
        nowMs += passesMs;
        const known = model.get(key) ?? { count: 0, atMs: 0 };
        let count = known.count;
        for (let atMs = known.atMs + limits.forgetMs; atMs <= nowMs && count > 0; atMs += limits.forgetMs) count -= 1;
        assert.equal(record.countOf(key, nowMs), count);
        if (!crashes) continue;
        record.crashed(key, nowMs);
        model.set(key, { count: Math.min(count + 1, limits.refusedAfter), atMs: nowMs });
      }
    }),
  );
});
