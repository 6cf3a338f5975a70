import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readdirSync, readFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { test } from "node:test";
import { eventually, testTimeoutMs } from "../core/eventually-fixture.ts";
import { delay, systemClock } from "../core/index.ts";
import { backoffMs } from "./backoff.ts";
import { describeProcessEnd } from "./process-end.ts";
import { endLeftover, readProcessStart } from "./process-identity.ts";
import { lockDirectory } from "./directory-lock.ts";
import { spawnProcess } from "./spawn.ts";

const env = { PATH: "/usr/bin:/bin" };
const never = new AbortController().signal;

function shell(script: string, lines: string[] = []) {
  return spawnProcess({
    command: "/bin/sh",
    args: ["-c", script],
    env,
    cwd: null,
    extraFds: [],
    onLine: (line) => lines.push(line),
    onExit: () => {},
    clock: systemClock,
  });
}

async function gone(pid: number): Promise<void> {
  while (readProcessStart(pid) !== null) await delay(systemClock, 2, AbortSignal.timeout(testTimeoutMs));
}

test("a child's lines, last lines and exit status are reported", async () => {
  const lines: string[] = [];
  await using child = await shell("echo hello; echo worse >&2; exit 3", lines);
  assert.equal(describeProcessEnd(await child.ended), "exit code 3");
  assert.deepEqual(lines.toSorted(), ["hello", "worse"]);
  assert.deepEqual(child.outputTail(), ["hello", "worse"]);
});

test("starting a command that does not exist rejects", async () => {
  const options = { args: [], env, cwd: null, extraFds: [], onLine: () => {}, onExit: () => {}, clock: systemClock };
  await assert.rejects(spawnProcess({ command: "/nonexistent/thing", ...options }), { code: "ENOENT" });
});

test("stopping sends SIGKILL after SIGTERM was ignored, and ends grandchildren too", async () => {
  const lines: string[] = [];
  await using child = await shell("trap '' TERM; sleep 1000 & echo $!; while true; do wait; done", lines);
  while (lines.length === 0) await delay(systemClock, 2, AbortSignal.timeout(testTimeoutMs));
  assert.equal(describeProcessEnd(await child.stop(20)), "signal SIGKILL");
  await gone(Number(lines[0]));
});

test("children and grandchildren of a killed program end with it", async () => {
  const entry = fileURLToPath(new URL("index.ts", import.meta.url));
  const base = fileURLToPath(new URL("../core/index.ts", import.meta.url));
  const program = `
    import { spawnProcess } from ${JSON.stringify(entry)};
    import { systemClock } from ${JSON.stringify(base)};
    const child = await spawnProcess({ command: "/bin/sh", args: ["-c", "trap '' TERM HUP IO; sleep 1000 & echo $!; wait"], env: {}, cwd: null,
      extraFds: [], onLine: (line) => process.stdout.write(child.pid + " " + line + "\\n"), onExit: () => {}, clock: systemClock });`;
  const parent = spawn(process.execPath, ["--input-type=module", "-e", program], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const [chunk] = (await once(parent.stdout, "data")) as [Buffer];
  const pids = String(chunk).trim().split(" ").map(Number);
  assert.equal(pids.length, 2);
  parent.kill("SIGKILL");
  for (const pid of pids) await gone(pid);
});

test("a child of a program that is killed right after starting it ends with it", async () => {
  const entry = fileURLToPath(new URL("index.ts", import.meta.url));
  const base = fileURLToPath(new URL("../core/index.ts", import.meta.url));
  // Identifies the child by its arguments, because the process that knows its pid is killed.
  const seconds = `100${process.pid}`;
  const program = `
    import { spawnProcess } from ${JSON.stringify(entry)};
    import { systemClock } from ${JSON.stringify(base)};
    void spawnProcess({ command: "sleep", args: ["${seconds}"], env: {}, cwd: null,
      extraFds: [], onLine: () => {}, onExit: () => {}, clock: systemClock });
    process.kill(process.pid, "SIGKILL");`;
  const parent = spawn(process.execPath, ["--input-type=module", "-e", program], { stdio: "ignore" });
  assert.deepEqual(await once(parent, "exit"), [null, "SIGKILL"]);
  await eventually(() => !commands().includes(`sleep\0${seconds}\0`));
});

function commands(): readonly string[] {
  return readdirSync("/proc").flatMap((name) => {
    try {
      return /^\d+$/.test(name) ? [readFileSync(`/proc/${name}/cmdline`, "utf8")] : [];
    } catch {
      return [];
    }
  });
}

test("a left process is ended by pid and start time; another process with the same pid is not", async () => {
  await using child = await shell("exec sleep 1000");
  const { pid, startTicks } = child;
  assert.equal(await endLeftover({ pid, startTicks: startTicks - 1 }, systemClock, never), false);
  assert.equal(await endLeftover({ pid, startTicks }, systemClock, never), true);
  assert.equal(describeProcessEnd(await child.ended), "signal SIGKILL");
});

test("waits between attempts grow to a limit with a jitter of a quarter", () => {
  const waits = (random: number) =>
    [1, 2, 3, 4, 2000].map((count) => backoffMs(count, { firstMs: 100, maxMs: 1000, factor: 3, random: () => random }));
  assert.deepEqual(waits(0), [100, 300, 900, 1000, 1000]);
  assert.deepEqual(waits(0.5), [87.5, 262.5, 787.5, 875, 875]);
});

test("a directory lock belongs to one caller until it is released or its process is killed", async () => {
  const directory = await mkdtemp(join(tmpdir(), "galatea-lock-"));
  try {
    {
      using held = lockDirectory(directory);
      assert.ok(held);
      assert.equal(lockDirectory(directory), null);
    }
    const entry = fileURLToPath(new URL("index.ts", import.meta.url));
    const program = `
      import { lockDirectory } from ${JSON.stringify(entry)};
      globalThis.held = lockDirectory(${JSON.stringify(directory)});
      process.stdout.write(held === null ? "taken" : "held");
      setInterval(() => {}, 1000);`;
    const other = spawn(process.execPath, ["--input-type=module", "-e", program], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    const [said] = (await once(other.stdout, "data")) as [Buffer];
    assert.equal(said.toString(), "held");
    assert.equal(lockDirectory(directory), null);
    const ended = once(other, "close");
    other.kill("SIGKILL");
    await ended;
    using again = lockDirectory(directory);
    assert.ok(again);
  } finally {
    await rm(directory, { recursive: true });
  }
});
