/** Where copies of components go, and which of them end, as pure functions. */
import assert from "node:assert/strict";
import { test } from "node:test";
import * as fc from "fast-check";
import {
  claimSum,
  fits,
  noClaim,
  placeCopies,
  surplusCopies,
  type ComponentClaim,
  type SharedInstance,
} from "./placement.ts";

const claims = fc.record({
  cpuCores: fc.integer({ min: 0, max: 16 }).map((quarters) => quarters / 4),
  acceleratorCount: fc.nat(2),
  memoryBytes: fc.integer({ min: 1, max: 100 }),
});
const sizes = fc.record({
  cpuCores: fc.nat(8),
  acceleratorCount: fc.nat(4),
  memoryBytes: fc.nat(400),
});

/** What is taken is part of what there is. */
const instances = fc.array(
  fc.tuple(sizes, fc.integer({ min: 0, max: 4 })).map(([has, share]): SharedInstance => {
    const part = (value: number) => Math.floor((value * share) / 4);
    const taken = {
      cpuCores: part(has.cpuCores),
      acceleratorCount: part(has.acceleratorCount),
      memoryBytes: part(has.memoryBytes),
    };
    return { has, taken, ownCount: share };
  }),
  { maxLength: 6 },
);

function after(
  all: readonly SharedInstance[],
  claim: ComponentClaim,
  places: readonly number[],
): readonly SharedInstance[] {
  const states = [...all];
  for (const place of places) {
    const state = states[place];
    assert.ok(state !== undefined);
    states[place] = { ...state, taken: claimSum(state.taken, claim), ownCount: state.ownCount + 1 };
  }
  return states;
}

test("nothing is over-committed, and a copy is left without a place only where none has room", () => {
  fc.assert(
    fc.property(
      instances,
      claims,
      fc.nat(12),
      fc.constantFrom("SPREAD", "BINPACK"),
      (all, claim, copyCount, strategy) => {
        const places = placeCopies(all, { claim, copyCount, strategy });
        const filled = after(all, claim, places);
        for (const state of filled) assert.ok(fits({ has: state.has, taken: noClaim }, state.taken));
        assert.ok(places.length <= copyCount);
        if (places.length < copyCount) assert.ok(filled.every((state) => !fits(state, claim)));
      },
    ),
  );
});

test("copies that are spread are on no instance two more than on another that has room", () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 6 }), fc.nat(20), claims, (instanceCount, copyCount, claim) => {
      const has = { cpuCores: 16, acceleratorCount: 8, memoryBytes: 400 };
      const empty = Array.from({ length: instanceCount }, () => ({ has, taken: noClaim, ownCount: 0 }));
      const filled = after(empty, claim, placeCopies(empty, { claim, copyCount, strategy: "SPREAD" }));
      const counts = filled.map(({ ownCount }) => ownCount);
      assert.ok(Math.max(...counts) - Math.min(...counts) <= 1, counts.join());
      const packed = after(empty, claim, placeCopies(empty, { claim, copyCount, strategy: "BINPACK" }));
      const full = packed.map((state) => fits(state, claim));
      // All that are not full but one are empty.
      assert.ok(packed.filter(({ ownCount }, index) => full[index] === true && ownCount > 0).length <= 1);
    }),
  );
});

test("those that end leave the others where they are, and spread as evenly as they were", () => {
  fc.assert(
    fc.property(fc.array(fc.nat(4), { maxLength: 20 }), fc.nat(25), (instanceOf, surplusCount) => {
      const surplus = surplusCopies(instanceOf, surplusCount);
      assert.equal(surplus.size, Math.min(surplusCount, instanceOf.length));
      const left = instanceOf.filter((_, position) => !surplus.has(position));
      const count = (of: readonly number[], instance: number) => of.filter((each) => each === instance).length;
      for (const position of surplus) {
        const ended = instanceOf[position] ?? -1;
        // None that stays is on an instance with two more copies than one that lost some.
        for (const other of left) assert.ok(count(left, other) <= count(left, ended) + 1);
      }
    }),
  );
});
