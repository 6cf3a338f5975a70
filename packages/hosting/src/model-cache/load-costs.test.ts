import assert from "node:assert/strict";
import { test } from "node:test";
import * as fc from "fast-check";
import { ModelCostSet, LoadCostHistory, chooseEvictions, limitCost, type ModelCost } from "./load-costs.ts";

const contentBytes = [100, 250, 400] as const;

const charge = (key: string): fc.Arbitrary<ModelCost> =>
  fc.record({
    key: fc.constant(key),
    ownBytes: fc.nat(300),
    contents: fc
      .subarray([0, 1, 2])
      .map((ids) => ids.map((id) => ({ id: `c${id}`, byteLength: contentBytes[id] ?? 0 }))),
  });

const charges = fc
  .integer({ min: 0, max: 8 })
  .chain((count) => fc.tuple(...Array.from({ length: count }, (_, index) => charge(`m${index}`))));

/** Computes the used bytes from the members, for comparison with the sum that the set keeps. */
function usedBytes(members: readonly ModelCost[]): number {
  const contents = new Map(members.flatMap((member) => member.contents.map(({ id, byteLength }) => [id, byteLength])));
  return members.reduce((sum, { ownBytes }) => sum + ownBytes, 0) + [...contents.values()].reduce((a, b) => a + b, 0);
}

test("property: chooseEvictions returns the shortest run of least recently used models that makes the new one fit, or null", () => {
  fc.assert(
    fc.property(charges, charge("new"), fc.nat(2000), (members, incoming, capacityBytes) => {
      const set = new ModelCostSet();
      for (const member of members) set.set(member);
      assert.equal(set.usedBytes, usedBytes(members));
      const victims = chooseEvictions(set, members, { incoming, capacityBytes });
      const fitsWithout = (count: number) => usedBytes([...members.slice(count), incoming]) <= capacityBytes;
      if (victims === null) {
        assert(!fitsWithout(members.length));
        return;
      }
      assert.deepEqual(victims, members.slice(0, victims.length));
      assert(fitsWithout(victims.length));
      if (victims.length > 0) assert(!fitsWithout(victims.length - 1));
      for (const { key } of victims) set.remove(key);
      set.set(incoming);
      assert(set.usedBytes <= capacityBytes);
    }),
  );
});

test("shared content is charged until the last model that uses it is removed", () => {
  const set = new ModelCostSet();
  const contents = [{ id: "weights", byteLength: 90 }];
  set.set({ key: "a", ownBytes: 1, contents });
  set.set({ key: "b", ownBytes: 2, contents });
  assert.equal(set.usedBytes, 93);
  set.set({ key: "b", ownBytes: 5, contents });
  assert.equal(set.usedBytes, 96);
  set.remove("a");
  assert.equal(set.usedBytes, 95);
  set.remove("b");
  assert.equal(set.usedBytes, 0);
});

test("the charge of a model is limited to the whole capacity", () => {
  const large = { key: "a", ownBytes: 10, contents: [{ id: "w", byteLength: 1000 }] };
  assert.deepEqual(limitCost(large, 500), { key: "a", ownBytes: 500, contents: [] });
  assert.equal(limitCost(large, 1010), large);
});

test("an estimate is the last measured cost of the same content, and the history drops its oldest entries", () => {
  const history = new LoadCostHistory({ entriesMax: 2, floorBytes: 10 });
  assert.equal(history.estimateOwnBytes("x", 3), 10);
  assert.equal(history.estimateOwnBytes("x", 30), 30);
  history.learn("x", 7);
  assert.equal(history.estimateOwnBytes("x", 30), 7);
  history.learn("y", 1);
  history.learn("z", 1);
  assert.equal(history.estimateOwnBytes("x", 30), 30);
});
