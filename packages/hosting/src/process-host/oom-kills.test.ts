import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { systemClock } from "@galatea/base";
import { startDetached } from "@galatea/base/processes";
import { readOomKillCount } from "./oom-kills.ts";
import { ProcessContainer } from "./process-container.ts";

test("the kernel's count of OOM kills is a number, or null", () => {
  const count = readOomKillCount();
  assert.ok(count === null || (Number.isSafeInteger(count) && count >= 0), String(count));
});

for (const [about, counts, isOutOfMemory] of [
  ["was killed while the kernel ended nothing", [4, 4], false],
  ["was killed as the kernel counted another", [4, 5], true],
  ["was killed long after the kernel ended something else", [4, 5, 5], false],
  ["was killed where the kernel does not count", [null, null], false],
] as const)
  test(`a container that ${about} is${isOutOfMemory ? "" : " not"} said to have run out of memory`, async () => {
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
    // A look at it, as at each ping.
    if (counts.length > 2) await container.workedNs();
    process.kill(child.pid, "SIGKILL");
    const end = await container.ended;
    assert.deepEqual([end.signal, end.isOutOfMemory], ["SIGKILL", isOutOfMemory]);
    await rm(directory, { recursive: true });
  });
