import assert from "node:assert/strict";
import { test } from "node:test";
import { installerErrorText } from "./installer-failure.ts";

const sentence = (...words: string[]) =>
  installerErrorText({
    command: "pip",
    args: ["install", "numpy"],
    end: "exit code 1",
    words,
    directory: "/data/python/1",
    packages: ["numpy", "tokenizers"],
  });

for (const [words, reason] of [
  ["Error: [Errno 28] No space left on device", "the disk is full"],
  ["OSError: [Errno 30] Read-only file system: '/x'", "the disk is read-only"],
  ["ERROR: Could not install packages: [Errno 13] Permission denied: '/x'", "permission denied for a file"],
  [
    "WARNING: Failed to establish a new connection\nERROR: No matching distribution found for numpy",
    "no package index",
  ],
  [
    "ERROR: Could not find a version that satisfies six==9 (from versions: none)\nERROR: No matching distribution found for six==9",
    "No matching distribution found for six==9; name an index",
  ],
  [
    "error: dns error: failed to lookup address information",
    "no package index provided numpy, tokenizers; name an index",
  ],
  ["error: the wheel is broken\n", "error: the wheel is broken"],
] as const)
  test(`the output ${JSON.stringify(words)} of an installer is reported in one sentence`, () => {
    const message = sentence(...words.split("\n"));
    assert.ok(message.startsWith(`making the Python environment failed: ${reason}`), message);
    assert.ok(message.endsWith("(pip install numpy: exit code 1)"), message);
    assert.ok(!message.includes("\n"));
  });

test("an installer without output is reported with its exit status", () => {
  assert.equal(sentence(), "making the Python environment failed: it wrote nothing (pip install numpy: exit code 1)");
});
