import assert from "node:assert/strict";
import { test } from "node:test";
import { benchHelp, benchOptions } from "./options.ts";

const options = (...argv: string[]) => benchOptions(argv, "/cache", ["churn", "zipf"]);

test("rows, rounds and lengths are as given; --quick shortens all of them", () => {
  const usual = {
    only: null,
    rounds: 5,
    quick: false,
    zipfModels: 5000,
    zipfSeconds: 300,
    cache: "/cache",
    list: false,
  };
  assert.deepEqual(options(), usual);
  const input = options("--only=zipf,churn", "--rounds", "2", "--zipf-models=10");
  assert.deepEqual(input, { ...usual, only: new Set(["zipf", "churn"]), rounds: 2, zipfModels: 10 });
  assert.deepEqual(options("--quick"), { ...usual, quick: true, rounds: 1, zipfModels: 300, zipfSeconds: 10 });
});

test("an invalid option is reported in one sentence", () => {
  for (const [argv, message] of [
    [["--only=chrn"], "unknown row 'chrn'; there are churn, zipf"],
    [["--rounds=0"], "Invalid option value. Got 0 for --rounds, expected at least 1"],
    [["--ronds=3"], "unrecognized option '--ronds', did you mean --rounds?"],
  ] as const)
    assert.throws(() => options(...argv), { name: "UsageError", message });
});

test("the help names every option", () => {
  assert.equal(options("--help"), null);
  for (const words of ["--only=TEXT", "--rounds=N", "--quick", "--list", "(/cache)"])
    assert.ok(benchHelp("/cache").includes(words), words);
});
