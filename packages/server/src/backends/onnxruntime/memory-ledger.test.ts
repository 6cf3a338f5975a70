import assert from "node:assert/strict";
import { test } from "node:test";
import * as fc from "fast-check";
import { MemoryLedger } from "./memory-ledger.ts";

test("growth is theirs whose runs were over since the last look, by their time", () => {
  const ledger = new MemoryLedger();
  for (const key of ["a", "b", "c"]) ledger.opened(key, 100);
  ledger.ran("a", 3000);
  ledger.ran("b", 1000);
  assert.deepEqual(ledger.measured(700), ["a", "b"]);
  assert.deepEqual(
    ["a", "b", "c"].map((key) => ledger.bytesOf(key)),
    [400, 200, 100],
  );
});

test("what is given back goes from what runs have left behind, and only then from what opening took", () => {
  const ledger = new MemoryLedger();
  ledger.opened("a", 100);
  ledger.opened("b", 300);
  ledger.ran("a", 1);
  ledger.measured(1400);
  assert.deepEqual(ledger.measured(500), ["a"]);
  assert.equal(ledger.bytesOf("a"), 200);
  ledger.measured(200);
  assert.deepEqual([ledger.bytesOf("a"), ledger.bytesOf("b")], [50, 150]);
});

test("growth that no run explains is shared by what opening took, and a closed session is charged with nothing", () => {
  const ledger = new MemoryLedger();
  ledger.opened("a", 100);
  ledger.opened("b", 300);
  ledger.measured(800);
  assert.deepEqual([ledger.bytesOf("a"), ledger.bytesOf("b")], [200, 600]);
  ledger.closed("a");
  assert.equal(ledger.bytesOf("a"), null);
});

test("whatever happens, the charges of all sessions are together what was measured, and none is negative", () => {
  const key = fc.constantFrom("a", "b", "c", "d");
  const bytes = fc.nat(2 ** 40);
  const step = fc.oneof(
    fc.record({ does: fc.constant("opened" as const), key, bytes }),
    fc.record({ does: fc.constant("ran" as const), key, bytes }),
    fc.record({ does: fc.constant("closed" as const), key, bytes }),
    fc.record({ does: fc.constant("measured" as const), key, bytes }),
  );
  fc.assert(
    fc.property(fc.array(step), (steps) => {
      const ledger = new MemoryLedger();
      for (const { does, key: of, bytes: count } of steps) {
        if (does === "opened") ledger.opened(of, count);
        else if (does === "ran") ledger.ran(of, count);
        else if (does === "closed") ledger.closed(of);
        else {
          ledger.measured(count);
          const charges = ledger.keys.map((each) => ledger.bytesOf(each) as number);
          assert.ok(charges.every((charge) => charge >= 0));
          const sum = charges.reduce((all, charge) => all + charge, 0);
          if (charges.length > 0) assert.ok(Math.abs(sum - count) <= charges.length, `${sum} for ${count}`);
        }
      }
    }),
  );
});
