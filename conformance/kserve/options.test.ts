import assert from "node:assert/strict";
import { test } from "node:test";
import { partNames, suiteHelp, suiteOptions } from "./options.ts";

test("without options all parts run against both servers, and options restrict them", () => {
  const all = { target: "both", record: false, only: "", part: null, parts: partNames, cache: "/cache", quiet: false };
  assert.deepEqual(suiteOptions([], "/cache"), all);
  assert.deepEqual(suiteOptions(["--target=both", "--target", "oracle", "--quiet"], "/cache"), {
    ...all,
    target: "oracle",
    quiet: true,
  });
  assert.deepEqual(suiteOptions(["--only=BF16"], "/cache")?.parts, ["cases"]);
  assert.deepEqual(suiteOptions(["--part=command-line"], "/cache")?.parts, ["command-line"]);
});

test("an invalid option is reported in one sentence", () => {
  for (const [argv, message] of [
    [["--target=orcale"], "Invalid option value. Got orcale for --target, expected one of oracle, galatea, both"],
    [["--part=case"], "Invalid option value. Got case for --part, expected one of cases, tritonclient, command-line"],
    [["--recrod"], "unrecognized option '--recrod', did you mean --record?"],
  ] as const)
    assert.throws(() => suiteOptions(argv, "/cache"), { name: "UsageError", message });
});

test("the help names every option", () => {
  assert.equal(suiteOptions(["--help"], "/cache"), null);
  for (const words of [
    "--target=oracle|galatea|both",
    "--record",
    "--part=cases|tritonclient|command-line",
    "(/cache)",
  ])
    assert.ok(suiteHelp("/cache").includes(words), words);
});
