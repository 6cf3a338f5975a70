import assert from "node:assert/strict";
import { test } from "node:test";
import { array, assert as check, constant, constantFrom, integer, nat, oneof, property, record } from "fast-check";
import { RecyclingMap } from "./recycling-map.ts";

test("property: it has the entries of a Map, in the same order, after any sets and deletes", () => {
  const key = oneof(nat(20), integer({ min: 0, max: 2 ** 32 - 1 }));
  const what = oneof({ weight: 20, arbitrary: constantFrom("set", "set", "delete") }, constant("clear"));
  check(
    property(array(record({ what, key, value: nat() }), { maxLength: 300 }), (steps) => {
      const ours = new RecyclingMap<number>();
      const model = new Map<number, number>();
      for (const step of steps) {
        if (step.what === "set") {
          ours.set(step.key, step.value);
          model.set(step.key, step.value);
        } else if (step.what === "delete") assert.equal(ours.delete(step.key), model.delete(step.key));
        else {
          ours.clear();
          model.clear();
        }
        assert.equal(ours.size, model.size);
        assert.equal(ours.get(step.key), model.get(step.key));
        assert.equal(ours.has(step.key), model.has(step.key));
        assert.equal(ours.first, model.values().next().value);
        assert.deepEqual(ours.values(), [...model.values()]);
      }
    }),
    { numRuns: 300 },
  );
});

test("many entries are added and deleted", () => {
  const map = new RecyclingMap<number>();
  for (let round = 0; round < 3; round++) {
    for (let key = 0; key < 20_000; key++) map.set(key * 8, key);
    for (let key = 0; key < 20_000; key++) assert.equal(map.get(key * 8), key);
    for (let key = 19_999; key >= 0; key--) assert.equal(map.delete(key * 8), true);
    assert.equal(map.size, 0);
    assert.deepEqual(map.values(), []);
  }
});
