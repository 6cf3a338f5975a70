import assert from "node:assert/strict";
import { test } from "node:test";
import * as fc from "fast-check";
import { unusedCopies } from "./model-router.ts";
import { derivePlacementKey } from "./model-rank.ts";

const copy = fc.record({ target: fc.constantFrom("a", "b", "c"), pinCount: fc.nat(1), usedNs: fc.nat(20) });
const instances = fc.array(fc.uniqueArray(copy, { selector: ({ target }) => target, maxLength: 3 }), { maxLength: 5 });

test("property: unusedCopies returns copies that are neither pinned nor recently used, and leaves one copy of each model", () => {
  fc.assert(
    fc.property(instances, (models) => {
      const held = models.map((each, ordinal) => ({
        ordinal,
        holder: ordinal,
        models: each.map((model) => ({ ...model, id: `${ordinal} ${model.target}` })),
      }));
      const removed = new Set(
        unusedCopies(held, { sinceNs: 10, key: derivePlacementKey("e") }).map(({ holder, id }) => `${holder} ${id}`),
      );
      const left = (target: string) =>
        held.flatMap(({ ordinal, models: all }) =>
          all.filter((model) => model.target === target && !removed.has(`${ordinal} ${model.id}`)),
        );
      for (const { ordinal, models: all } of held) {
        for (const { id, pinCount, usedNs } of all) {
          if (removed.has(`${ordinal} ${id}`)) assert.ok(pinCount === 0 && usedNs <= 10);
        }
      }
      for (const target of ["a", "b", "c"]) {
        const before = models.flat().filter((model) => model.target === target).length;
        const cold = left(target).filter(({ pinCount, usedNs }) => pinCount === 0 && usedNs <= 10);
        assert.ok(cold.length <= 1);
        assert.equal(left(target).length > 0, before > 0);
      }
    }),
    { numRuns: 2000 },
  );
});
