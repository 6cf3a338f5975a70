import assert from "node:assert/strict";
import { test } from "node:test";
import { soakHelp, soakOptions } from "./options.ts";

test("--minutes and --seed are used, and without --seed the seed is random", () => {
  assert.deepEqual(
    soakOptions([], () => 7),
    { minutes: 10, seed: 7, record: false },
  );
  const input = soakOptions(["--minutes=0.5", "--seed", "3", "--record"], () => 7);
  assert.deepEqual(input, { minutes: 0.5, seed: 3, record: true });
});

test("--minutes=0 is rejected", () =>
  assert.throws(() => soakOptions(["--minutes=0"], () => 7), { name: "UsageError" }));

test("the help names every flag", () => assert.match(soakHelp(), /--minutes[\s\S]*--seed[\s\S]*--record/));
