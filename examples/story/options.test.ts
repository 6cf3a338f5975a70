import assert from "node:assert/strict";
import { test } from "node:test";
import { storyHelp, storyOptions } from "./options.ts";

test("without options the story uses the default port and data directory and stays up", () => {
  assert.deepEqual(storyOptions([], "/usual"), { story: "sentences", once: false, port: 8770, data: "/usual" });
  const input = storyOptions(["--once", "--story=images", "--port=0", "--data", "/other"], "/usual");
  assert.deepEqual(input, { story: "images", once: true, port: 0, data: "/other" });
});

test("an invalid option is reported in one sentence", () => {
  for (const [argv, message] of [
    [["--port", "abc"], "Invalid option value. Got abc for --port, expected an integer"],
    [["--port=70000"], "Invalid option value. Got 70000 for --port, expected at most 65535"],
    [["--story=films"], "Invalid option value. Got films for --story, expected one of sentences, images"],
    [["--onec"], "unrecognized option '--onec', did you mean --once?"],
    [["now"], "unexpected argument 'now'"],
  ] as const)
    assert.throws(() => storyOptions(argv, "/usual"), { name: "UsageError", message });
});

test("the help names every option and its default", () => {
  assert.equal(storyOptions(["--once", "--help"], "/usual"), null);
  for (const words of ["--once", "--port=N", "--data=TEXT", "(8770)", "(/usual)"])
    assert.ok(storyHelp("/usual").includes(words), words);
});
