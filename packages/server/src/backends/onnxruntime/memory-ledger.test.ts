import assert from "node:assert/strict";
import { test } from "node:test";
import * as fc from "fast-check";
import { MemoryLedger } from "./memory-ledger.ts";

test("memory growth is charged to sessions whose runs ended since the last measurement, by run time", () => {
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

test("released memory reduces the charges of runs first, and then those of opening", () => {
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

test("growth without runs is shared by the charges of opening, and a closed session is charged nothing", () => {
  const ledger = new MemoryLedger();
  ledger.opened("a", 100);
  ledger.opened("b", 300);
  ledger.measured(800);
  assert.deepEqual([ledger.bytesOf("a"), ledger.bytesOf("b")], [200, 600]);
  ledger.closed("a");
  assert.equal(ledger.bytesOf("a"), null);
});

test("property: the charges of all sessions sum to the measured memory, and none is negative", () => {
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
