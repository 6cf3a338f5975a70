import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { systemClock } from "@galatea/base";
import { startDetached } from "@galatea/base/processes";
import { readOomKillCount } from "./oom-kills.ts";
import { ProcessContainer } from "./process-container.ts";

test("readOomKillCount returns a number, or null without a count in the kernel", () => {
  const count = readOomKillCount();
  assert.ok(count === null || (Number.isSafeInteger(count) && count >= 0), String(count));
});

for (const [about, counts, isOutOfMemory] of [
  ["is killed while the kernel's OOM count stays the same", [4, 4], false],
  ["is killed while the kernel's OOM count rises", [4, 5], true],
  ["is killed long after the kernel's OOM count rose", [4, 5, 5], false],
  ["is killed on a kernel without an OOM count", [null, null], false],
] as const)
  test(`a container that ${about} is${isOutOfMemory ? "" : " not"} reported as out of memory`, async () => {
    const directory = await mkdtemp(join(tmpdir(), "oom-kills-"));
    const child = await startDetached({
      command: process.execPath,
      args: ["-e", "setInterval(() => {}, 1000)"],
      env: {},
      cwd: directory,
      outputDirectory: directory,
      onLine: () => {},
      clock: systemClock,
    });
    const left: (number | null)[] = [...counts];
    const container = new ProcessContainer(child, join(directory, "s"), {
      directory,
      machine: { gpus: () => [] },
      bootId: "",
      isDetached: () => false,
      oomKillCount: () => left.shift() ?? null,
    });
    // `workedNs` reads the count, as each ping does.
    if (counts.length > 2) await container.workedNs();
    process.kill(child.pid, "SIGKILL");
    const end = await container.ended;
    assert.deepEqual([end.signal, end.isOutOfMemory], ["SIGKILL", isOutOfMemory]);
    await rm(directory, { recursive: true });
  });
