import assert from "node:assert/strict";
import { test } from "node:test";
import * as fc from "fast-check";
import { highestRanked } from "./model-routing.ts";
import { derivePlacementKey } from "./model-rank.ts";
import { modelsToPreload } from "./model-warming.ts";

const key = derivePlacementKey("e");
const names = ["a", "b", "c", "d", "e", "f"] as const;
const model = fc.record({
  target: fc.constantFrom(...names),
  pinCount: fc.nat(1),
  usedNs: fc.nat(20),
  wholeBytes: fc.nat(9),
});
const sources = fc.array(
  fc.uniqueArray(model, { selector: ({ target }) => target }).map((models) => ({ models })),
  { maxLength: 4 },
);
const positions = fc
  .uniqueArray(fc.nat(9), { maxLength: 5 })
  .chain((ordinals) =>
    fc.tuple(
      ...ordinals.map((ordinal) =>
        fc
          .subarray([...names])
          .map((held) => ({ ordinal, has: (target: string) => held.some((each) => each === target) })),
      ),
    ),
  );

test("property: modelsToPreload returns each model in use that no new instance has, most recently used first, for its preferred instance", () => {
  fc.assert(
    fc.property(sources, positions, (from, to) => {
      const warmings = modelsToPreload(from, to, { sinceNs: 10, key });
      const inUse = new Map<string, number>();
      for (const { target, pinCount, usedNs } of from.flatMap(({ models }) => models)) {
        if (pinCount === 0 && usedNs <= 10) continue;
        inUse.set(target, Math.max(inUse.get(target) ?? 0, pinCount > 0 ? Infinity : usedNs));
      }
      const expected = to.length === 0 ? [] : [...inUse.keys()].filter((target) => !to.some(({ has }) => has(target)));
      assert.deepEqual(warmings.map(({ target }) => target).toSorted(), expected.toSorted());
      const times = warmings.map(({ target }) => inUse.get(target) ?? 0);
      assert.deepEqual(
        times,
        times.toSorted((a, b) => (a === b ? 0 : b > a ? 1 : -1)),
      );
      const [first, ...more] = to;
      for (const { target, to: location, bytes } of warmings) {
        assert(first !== undefined);
        assert.equal(location, highestRanked([first, ...more], { key, target }));
        const weights = from.flatMap(({ models }) => models.filter((each) => each.target === target));
        assert.ok(weights.some(({ wholeBytes }) => wholeBytes === bytes));
      }
    }),
    { numRuns: 1000 },
  );
});
