import assert from "node:assert/strict";
import { test } from "node:test";
import { soakHelp, soakOptions } from "./options.ts";

test("minutes and seed are as asked; a seed that is not given is a new one", () => {
  assert.deepEqual(
    soakOptions([], () => 7),
    { minutes: 10, seed: 7, record: false },
  );
  const given = soakOptions(["--minutes=0.5", "--seed", "3", "--record"], () => 7);
  assert.deepEqual(given, { minutes: 0.5, seed: 3, record: true });
});

test("no time at all is refused", () =>
  assert.throws(() => soakOptions(["--minutes=0"], () => 7), { name: "UsageError" }));

test("the help names every flag", () => assert.match(soakHelp(), /--minutes[\s\S]*--seed[\s\S]*--record/));
