import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { acquireLock } from "./lock.ts";

const never = new AbortController().signal;

async function inDirectory(work: (directory: string) => Promise<void>): Promise<void> {
  const directory = await mkdtemp(join(tmpdir(), "galatea-lock-"));
  try {
    await work(directory);
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}

test("only one of five concurrent callers holds the lock at a time", () =>
  inDirectory(async (directory) => {
    let held = 0;
    let mostHeld = 0;
    const hold = async () => {
      using _lock = await acquireLock(join(directory, "lock"), never);
      mostHeld = Math.max(mostHeld, ++held);
      await new Promise((resolve) => setImmediate(resolve));
      held--;
    };
    await Promise.all(Array.from({ length: 5 }, hold));
    assert.equal(mostHeld, 1);
  }));

test("a lock whose owner was killed can be acquired", () =>
  inDirectory(async (directory) => {
    const program = `
      import { acquireLock } from ${JSON.stringify(fileURLToPath(new URL("lock.ts", import.meta.url)))};
      globalThis.held = await acquireLock(${JSON.stringify(join(directory, "lock"))}, new AbortController().signal);
      console.log("held");
      setInterval(() => {}, 1000);`;
    const child = spawn(process.execPath, ["--input-type=module-typescript", "-e", program], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    await new Promise((resolve) => child.stdout.once("data", resolve));
    await assert.rejects(acquireLock(join(directory, "lock"), AbortSignal.timeout(300)));
    const ended = new Promise((resolve) => child.once("close", resolve));
    child.kill("SIGKILL");
    await ended;
    using _lock = await acquireLock(join(directory, "lock"), never);
  }));

test("an aborted signal ends the wait for a lock", () =>
  inDirectory(async (directory) => {
    using _lock = await acquireLock(join(directory, "lock"), never);
    const controller = new AbortController();
    const waiting = acquireLock(join(directory, "lock"), controller.signal);
    controller.abort();
    await assert.rejects(waiting, { name: "AbortError" });
  }));
