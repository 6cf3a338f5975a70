import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdtemp, readdir, readFile, rm, stat } from "node:fs/promises";
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

test("one holder at a time, and nothing is left behind", () =>
  inDirectory(async (directory) => {
    let held = 0;
    let mostHeld = 0;
    const hold = async () => {
      await using _lock = await acquireLock(join(directory, "lock"), never);
      mostHeld = Math.max(mostHeld, ++held);
      await new Promise((resolve) => setImmediate(resolve));
      held--;
    };
    await Promise.all(Array.from({ length: 5 }, hold));
    assert.equal(mostHeld, 1);
    assert.deepEqual(await readdir(directory), []);
  }));

test("a lock whose owner was killed is taken over", () =>
  inDirectory(async (directory) => {
    const program = `
      import { acquireLock } from ${JSON.stringify(fileURLToPath(new URL("lock.ts", import.meta.url)))};
      await acquireLock(${JSON.stringify(join(directory, "lock"))}, new AbortController().signal);
      console.log("held");
      setInterval(() => {}, 1000);`;
    const child = spawn(process.execPath, ["--input-type=module-typescript", "-e", program], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    await new Promise((resolve) => child.stdout.once("data", resolve));
    assert.match(await readFile(join(directory, "lock", "owner"), "utf8"), new RegExp(`^${child.pid} `));
    const ended = new Promise((resolve) => child.once("close", resolve));
    child.kill("SIGKILL");
    await ended;
    await using _lock = await acquireLock(join(directory, "lock"), never);
    assert.ok((await stat(join(directory, "lock"))).isDirectory());
  }));

test("waiting ends with its signal", () =>
  inDirectory(async (directory) => {
    await using _lock = await acquireLock(join(directory, "lock"), never);
    const controller = new AbortController();
    const waiting = acquireLock(join(directory, "lock"), controller.signal);
    controller.abort(new Error("enough"));
    await assert.rejects(waiting, /enough/);
  }));
