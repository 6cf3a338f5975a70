import assert from "node:assert/strict";
import { test } from "node:test";
import * as fc from "fast-check";
import { divideProcessors } from "./placement.ts";

test("each thread of a run has its own processor, and neighbouring sessions use different ones", () => {
  const orders = fc.uniqueArray(fc.nat(1023), { minLength: 1, maxLength: 64 });
  fc.assert(
    fc.property(orders, fc.integer({ min: 0, max: 70 }), fc.nat(200), (order, threadCount, index) => {
      const placement = divideProcessors(order, threadCount, index);
      if (threadCount < 2 || threadCount > order.length) return assert.equal(placement, null);
      assert.ok(placement !== null);
      assert.equal(new Set(placement.pool).size, threadCount - 1);
      assert.deepEqual([...placement.pool, ...placement.caller].toSorted(byNumber), order.toSorted(byNumber));
      assert.notEqual(divideProcessors(order, threadCount, index + 1)?.home, placement.home);
      assert.ok(placement.caller.includes(order[placement.home]!));
    }),
  );
});

const byNumber = (a: number, b: number) => a - b;
