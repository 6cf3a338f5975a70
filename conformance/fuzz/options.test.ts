import assert from "node:assert/strict";
import { test } from "node:test";
import { fuzzHelp, fuzzOptions } from "./options.ts";

const options = (...argv: string[]) =>
  fuzzOptions(argv, { targetNames: ["http-body", "config-text"], newSeed: () => 7 });

test("targets, count and seed follow the options; without a seed a new one is chosen", () => {
  const usual = { target: null, count: 100_000, seed: 7, path: null, record: false, list: false };
  assert.deepEqual(options(), usual);
  const input = options("--target=http-body", "--count", "5", "--seed=3", "--path=12:0");
  assert.deepEqual(input, { ...usual, target: new Set(["http-body"]), count: 5, seed: 3, path: "12:0" });
});

test("an invalid option is reported in one sentence", () => {
  for (const [argv, message] of [
    [["--target=http"], "unknown target 'http'; there are http-body, config-text"],
    [["--count=0"], "Invalid option value. Got 0 for --count, expected at least 1"],
    [["--path=3"], "--path names an input of one --target with its --seed"],
  ] as const)
    assert.throws(() => options(...argv), { name: "UsageError", message });
});

test("the help names every flag", () => assert.match(fuzzHelp(), /--target[\s\S]*--count[\s\S]*--seed[\s\S]*--path/));
