import assert from "node:assert/strict";
import { test } from "node:test";
import { LineWriter } from "./line-writer.ts";
import { fileTarget } from "./log-targets.ts";

test("log lines that a full disk rejects go to stderr with the reason", async (t) => {
  const reported = t.mock.method(process.stderr, "write", () => true);
  // Every write to Linux's /dev/full fails with ENOSPC.
  const writer = new LineWriter(fileTarget("/dev/full"), { waitingCharsMax: 1000, droppedLine: () => "" });
  writer.write("I1122 a line\n");
  await writer.written();
  const texts = reported.mock.calls.map((call) => call.arguments[0]);
  reported.mock.restore();
  assert.deepEqual(texts, ["I1122 a line (not in the log file: the disk that holds '/dev/full' is full)\n"]);
});
