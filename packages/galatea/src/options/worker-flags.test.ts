import assert from "node:assert/strict";
import { test } from "node:test";
import { parseFlags } from "./parse-flags.ts";
import { serveFlags } from "./serve-flags.ts";
import { serveOptions } from "./serve-options.ts";
import { upFlags, upOptions } from "./up-flags.ts";

test("up passes its worker flags to containers as arguments that serve parses to the same options", () => {
  const deadlines = ["--onnx-run-deadline-secs=7", "--tree-run-deadline-secs=8"];
  const words = [...deadlines, "--worker-connect=443", "--worker-read=/data"];
  const { workerArguments } = upOptions(parseFlags(words, upFlags));
  assert.deepEqual(workerArguments.toSorted(), words.toSorted());
  const options = serveOptions(parseFlags(["--model-repository=/models", ...workerArguments], serveFlags), {});
  assert.deepEqual([options.onnxRunDeadlineSecs, options.treeRunDeadlineSecs], [7, 8]);
  assert.deepEqual(options.workerConnect, [443]);
});
