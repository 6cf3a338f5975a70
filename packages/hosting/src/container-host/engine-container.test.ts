import assert from "node:assert/strict";
import { Readable } from "node:stream";
import { test } from "node:test";
import { endOf, usageOf } from "./engine-container.ts";
import { readProgress } from "./image-pull.ts";

const ended = (ExitCode: number, OOMKilled = false) => endOf({ Running: false, ExitCode, OOMKilled });

test("exit codes over 128 are signals; a container that another program removed has neither", () => {
  assert.deepEqual(ended(3), { exitCode: 3, signal: null, isOutOfMemory: false });
  assert.deepEqual(ended(137, true), { exitCode: null, signal: "SIGKILL", isOutOfMemory: true });
  assert.deepEqual(ended(1, true), { exitCode: 1, signal: null, isOutOfMemory: true });
  assert.deepEqual(ended(200), { exitCode: 200, signal: null, isOutOfMemory: false });
  assert.deepEqual(endOf(null), { exitCode: null, signal: null, isOutOfMemory: false });
});

test("memory is counted without the file cache, of both versions of control groups; an ended container has none", () => {
  const cpu_stats = { cpu_usage: { total_usage: 5 } };
  const stats = { inactive_file: 1, total_inactive_file: 30 };
  assert.deepEqual(usageOf({ cpu_stats, memory_stats: { usage: 100, stats } }), { cpuNs: 5, memoryBytes: 70 });
  const newer = { usage: 100, stats: { inactive_file: 20 } };
  assert.deepEqual(usageOf({ cpu_stats, memory_stats: newer }), { cpuNs: 5, memoryBytes: 80 });
  assert.equal(usageOf({}), null);
  assert.equal(usageOf({ cpu_stats: { cpu_usage: { total_usage: 0 } }, memory_stats: {} }), null);
});

test("the engine's report is read line by line, and ends with its error", async () => {
  const report = ['{"status":"Pulling"}\n{"stream":"Loaded ', 'image: a:1\\n"}\n'];
  assert.deepEqual(await readProgress(Readable.from(report.map((segment) => Buffer.from(segment)))), [
    "Loaded image: a:1",
  ]);
  const failed = Readable.from([Buffer.from('{"status":"x"}\n{"error":"manifest unknown"}')]);
  await assert.rejects(readProgress(failed), { message: "manifest unknown" });
});
