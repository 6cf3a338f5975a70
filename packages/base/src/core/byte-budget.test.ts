import assert from "node:assert/strict";
import { test } from "node:test";
import * as fc from "fast-check";
import { ByteBudget, ByteLease } from "./byte-budget.ts";

test("property: reservations and releases in any order stay within the limit, and all bytes are released at the end", () => {
  const steps = fc.array(
    fc.record({
      lease: fc.nat(4),
      act: fc.oneof(
        fc.record({ grow: fc.nat(80) }),
        fc.record({ shrinkTo: fc.nat(80) }),
        fc.record({ shrinkBy: fc.nat(80) }),
        fc.constant({ end: true } as const),
      ),
    }),
    { maxLength: 60 },
  );
  fc.assert(
    fc.property(steps, (drawn) => {
      const budget = new ByteBudget(100);
      const leases = Array.from({ length: 5 }, () => new ByteLease(budget));
      for (const { lease, act } of drawn) {
        const one = leases[lease]!;
        const before = one.bytes;
        if ("grow" in act) {
          const fits = budget.fits(act.grow);
          try {
            one.grow(act.grow);
            assert.ok(fits);
            assert.equal(one.bytes, before + act.grow);
          } catch (error) {
            assert.match((error as Error).message, /^memory for requests in flight is full: |^the request has ended$/);
            assert.equal(one.bytes, before);
          }
        } else if ("shrinkTo" in act) {
          one.shrinkTo(act.shrinkTo);
          assert.equal(one.bytes, Math.min(before, act.shrinkTo));
        } else if ("shrinkBy" in act) {
          one.shrinkBy(act.shrinkBy);
          assert.equal(one.bytes, Math.max(0, before - act.shrinkBy));
        } else one[Symbol.dispose]();
        assert.equal(
          budget.usedBytes,
          leases.reduce((sum, each) => sum + each.bytes, 0),
        );
        assert.ok(budget.usedBytes <= 100);
      }
      for (const each of leases) each[Symbol.dispose]();
      assert.equal(budget.usedBytes, 0);
    }),
  );
});

test("a request that may fit later is rejected as full, one that never fits as too large", () => {
  const budget = new ByteBudget(100);
  budget.reserve(60);
  assert.throws(() => budget.reserve(41), {
    code: "UNAVAILABLE",
    reason: "memory-full",
    message:
      "memory for requests in flight is full: 41 bytes requested, 60 of 100 bytes in use; retry later or raise --request-memory-bytes",
  });
  assert.throws(() => budget.reserve(101), {
    code: "INVALID_ARG",
    reason: "memory-exceeded",
    message: "101 bytes exceed the memory for all requests in flight, 100 bytes; raise --request-memory-bytes",
  });
  budget.reserve(40);
  budget.release(100);
  assert.throws(() => budget.release(1), /bug: more bytes were released/);
});

test("bytes that already exist are counted beyond the limit, and block other reservations until they are released", () => {
  const budget = new ByteBudget(100);
  const lease = new ByteLease(budget);
  lease.growUnchecked(150);
  assert.throws(() => budget.reserve(1), { reason: "memory-full" });
  lease[Symbol.dispose]();
  budget.reserve(100);
});

test("a lease that its owner ended reserves no more bytes", () => {
  const budget = new ByteBudget(100);
  const lease = new ByteLease(budget);
  lease.grow(10);
  lease[Symbol.dispose]();
  assert.throws(() => lease.grow(1), { code: "CANCELLED" });
  lease.growUnchecked(1);
  assert.equal(budget.usedBytes, 0);
});

test("idle memory never blocks a request: the missing bytes are reclaimed from idle holders", () => {
  const budget = new ByteBudget(100);
  const requested: string[] = [];
  const holder = (name: string, heldBytes: number) => {
    let left = heldBytes;
    budget.addIdleBytes(left);
    return budget.addIdleMemory({
      reclaim(bytes) {
        const input = Math.min(bytes, left);
        requested.push(`${name} ${input}`);
        left -= input;
        budget.addIdleBytes(-input);
        return input;
      },
    });
  };
  holder("empty", 0);
  holder("a", 30);
  using _gone = holder("b", 30);
  budget.reserve(40);
  assert.deepEqual(requested, []);
  budget.reserve(50);
  assert.deepEqual(requested, ["empty 0", "a 30", "b 20"]);
  requested.length = 0;
  budget.reserve(10);
  assert.deepEqual(requested, ["a 0", "b 10"]);
  assert.deepEqual([budget.usedBytes, budget.idleBytes], [100, 0]);
});

test("callers with large reservations leave memory for callers with small ones", () => {
  const budget = new ByteBudget(1_600_000);
  assert.throws(() => budget.reserve(1_500_001), {
    reason: "memory-exceeded",
    message: "1500001 bytes exceed the memory for all requests in flight, 1500000 bytes; raise --request-memory-bytes",
  });
  budget.reserve(1_500_000);
  assert.throws(() => budget.reserve(20_000), { reason: "memory-full" });
  for (let used = 0; used < 10; used++) budget.reserve(10_000);
  assert.throws(() => budget.reserve(1), { reason: "memory-full" });
});
