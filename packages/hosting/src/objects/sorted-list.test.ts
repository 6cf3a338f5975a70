import assert from "node:assert/strict";
import { test } from "node:test";
import * as fc from "fast-check";
import { SortedList } from "./sorted-list.ts";

const ascending = (a: number, b: number) => a - b;

test("a sorted list has the items that were added and not removed, in order", () => {
  const step = fc.record({ item: fc.integer({ min: 0, max: 50 }), insert: fc.boolean() });
  fc.assert(
    fc.property(fc.array(step), (steps) => {
      const list = new SortedList(ascending);
      const held = new Set<number>();
      for (const { item, insert } of steps) {
        if (held.has(item) === insert) continue;
        if (insert) list.insert(item);
        else list.delete(item);
        if (insert) held.add(item);
        else held.delete(item);
      }
      assert.deepEqual(
        Array.from({ length: list.length }, (_, at) => list.at(at)),
        [...held].sort(ascending),
      );
    }),
  );
});

test("a position among 10,000 items is found with few comparisons", () => {
  const list = new SortedList(ascending);
  list.load(Array.from({ length: 10_000 }, (_, at) => 9_999 - at));
  let lookedAt = 0;
  const offset = list.firstNot((item) => {
    lookedAt += 1;
    return item < 7_000;
  });
  assert.deepEqual([offset, list.at(offset)], [7_000, 7_000]);
  assert.ok(lookedAt <= 14, `${lookedAt} items`);
});
