import assert from "node:assert/strict";
import { execFileSync, spawn, type ChildProcessByStdio } from "node:child_process";
import { randomInt } from "node:crypto";
import { once } from "node:events";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { mkdir, mkdtemp, readFile, readdir, rename, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Readable } from "node:stream";
import { buffer } from "node:stream/consumers";
import { test } from "node:test";
import { eventually } from "@galatea/base/core/eventually-fixture.ts";
import { silentLogger } from "@galatea/base";
import { childrenOf } from "@galatea/base/processes";
import { openDirectoryStore } from "./directory-store.ts";

/** Puts, overwrites and deletes endlessly in sixteen lanes with separate keys. Prints each write before it starts and after it is acknowledged. */
const writer = `
import { writeSync } from "node:fs";
import { Readable } from "node:stream";
import { openDirectoryStore } from ${JSON.stringify(new URL("./directory-store.ts", import.meta.url).href)};
import { silentLogger } from ${JSON.stringify(new URL("../../../base/src/core/index.ts", import.meta.url).href)};
const store = await openDirectoryStore({ folder: process.argv[1], logger: silentLogger });
const signal = new AbortController().signal;
const sizes = [0, 1, 1000, 20_000, 60_000, 70_000, 2 ** 20, 2 ** 20 + 77];
let n = Number(process.argv[2]);
const lane = async (number) => {
  for (;;) {
    const seed = (n += 1);
    const key = number + "/" + (seed % 3);
    const size = seed % 4 === 0 ? -1 : sizes[(seed * 7919) % sizes.length];
    writeSync(1, "begun " + key + " " + seed + " " + size + "\\n");
    if (size === -1) await store.delete("bkt", key);
    else await store.put("bkt", key, Readable.from([Buffer.alloc(size, seed + "-")]), { signal });
    writeSync(1, "acknowledged " + key + "\\n");
  }
};
await Promise.all(Array.from({ length: 16 }, (_, number) => lane(number)));`;

/** The content of a key. Size -1: the key does not exist. */
interface Written {
  readonly seed: number;
  readonly size: number;
}

const nothing: Written = { seed: 0, size: -1 };

/** The acknowledged writes of several runs of a store, and the writes that were in progress when the last run ended. */
class Expected {
  readonly acknowledged = new Map<string, Written>();
  readonly started = new Map<string, Written>();
  acknowledgedCount = 0;
  seed = 0;

  read(text: string): void {
    this.started.clear();
    for (const line of text.split("\n").slice(0, -1)) {
      const [what, key = "", seed, size] = line.split(" ");
      if (what === "begun") {
        this.started.set(key, { seed: Number(seed), size: Number(size) });
        this.seed = Math.max(this.seed, Number(seed));
        continue;
      }
      this.acknowledged.set(key, this.started.get(key) ?? nothing);
      this.started.delete(key);
      this.acknowledgedCount += 1;
    }
  }

  /** Asserts that each key has the content of the last acknowledged write, or the complete content of the write in progress. */
  async check(folder: string): Promise<void> {
    await using store = await openDirectoryStore({ folder, logger: silentLogger });
    const { objects } = await store.list("bkt", { prefix: "", delimiter: "", startAfter: "", keysMax: 1000 });
    const found = new Set(objects.map(({ key }) => key));
    for (const key of new Set([...this.acknowledged.keys(), ...found])) {
      const bytes = found.has(key) ? await buffer((await store.get("bkt", key)).body) : null;
      const allowed = [this.acknowledged.get(key) ?? nothing, this.started.get(key)].filter(
        (each) => each !== undefined,
      );
      const is = allowed.find(({ seed, size }) =>
        size === -1 ? bytes === null : bytes?.equals(Buffer.alloc(size, `${seed}-`)) === true,
      );
      assert.ok(
        is !== undefined,
        `${key} has ${bytes?.byteLength} bytes, and is allowed to be ${JSON.stringify(allowed)}`,
      );
      this.acknowledged.set(key, is);
    }
  }
}

/** Returns true if a process has closed all its files. A zombie may still have threads with open files, so its threads are counted. */
function hasEnded(pid: number): boolean {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "latin1");
    const isZombie = stat.slice(stat.lastIndexOf(")") + 2).startsWith("Z");
    return isZombie && readdirSync(`/proc/${pid}/task`).length === 1;
  } catch {
    return true;
  }
}

type Writer = ChildProcessByStdio<null, Readable, null>;

/** Runs a writer for a random time, calls `end`, and resolves with its output. */
async function runWriter(folder: string, expected: Expected, end: (writing: Writer) => Promise<void>): Promise<string> {
  const args = ["--input-type=module", "-e", writer, folder, String(expected.seed)];
  const child = spawn(process.execPath, args, { stdio: ["ignore", "pipe", "inherit"] });
  let text = "";
  child.stdout.on("data", (chunk: Buffer) => (text += chunk.toString()));
  const closed = once(child, "close");
  await Promise.race([once(child.stdout, "data"), closed]);
  // The process must end at a random moment during the writes, so this delay waits for no event.
  await new Promise((resolve) => setTimeout(resolve, randomInt(600)));
  await end(child);
  const hashing = childrenOf(child.pid ?? 0);
  child.kill("SIGKILL");
  await closed;
  // The kernel ends the hashing processes after the writer. Until then, they may have files open.
  await eventually(() => hashing.every((pid) => hasEnded(pid)));
  return text;
}

async function madeBucket(folder: string): Promise<void> {
  const store = await openDirectoryStore({ folder, logger: silentLogger });
  await store.createBucket("bkt");
  await store[Symbol.asyncDispose]();
}

test("kill -9 at random moments: acknowledged writes are there, and others are complete or absent", async () => {
  const folder = await mkdtemp(join(tmpdir(), "galatea-crash-"));
  try {
    await madeBucket(folder);
    const expected = new Expected();
    for (let round = 0; round < 6; round += 1) {
      expected.read(await runWriter(folder, expected, async () => undefined));
      await expected.check(folder);
    }
    assert.ok(expected.acknowledgedCount > 0);
  } finally {
    await rm(folder, { recursive: true });
  }
});

/** Stops a process. Resolves when all its threads have stopped, because only then it writes nothing. */
async function stopped(child: Writer): Promise<void> {
  child.kill("SIGSTOP");
  const tasks = `/proc/${child.pid}/task`;
  for (let isStopped = false; !isStopped;) {
    const states = (await readdir(tasks)).map(async (task) => {
      const line = await readFile(join(tasks, task, "stat"), "utf8");
      return line.slice(line.lastIndexOf(")") + 2, line.lastIndexOf(")") + 3);
    });
    isStopped = (await Promise.all(states)).every((state) => state === "T");
  }
}

test("a power failure at random moments: acknowledged writes are there, and others are complete or absent", async (context) => {
  // The image file contains only data that was flushed to the disk. A copy of it is the state of the disk after a power failure.
  const isPossible = process.getuid?.() === 0 && existsSync("/usr/sbin/mkfs.ext4") && existsSync("/dev/loop-control");
  if (!isPossible) return context.skip("mounting an image needs root, mkfs.ext4 and loop devices");
  const directory = await mkdtemp(join(tmpdir(), "galatea-power-"));
  const [image, copy, mounted] = [join(directory, "image"), join(directory, "copy"), join(directory, "mounted")];
  const mount = () => execFileSync("mount", ["-o", "loop", image, mounted]);
  await mkdir(mounted);
  execFileSync("truncate", ["-s", "256M", image]);
  execFileSync("/usr/sbin/mkfs.ext4", ["-q", image]);
  mount();
  try {
    const folder = join(mounted, "store");
    await madeBucket(folder);
    const expected = new Expected();
    for (let round = 0; round < 5; round += 1) {
      const text = await runWriter(folder, expected, async (child) => {
        await stopped(child);
        execFileSync("cp", ["--sparse=always", image, copy]);
      });
      execFileSync("umount", [mounted]);
      await rename(copy, image);
      mount();
      expected.read(text);
      await expected.check(folder);
    }
    assert.ok(expected.acknowledgedCount > 0);
  } finally {
    execFileSync("umount", ["-l", mounted]);
    await rm(directory, { recursive: true });
  }
});
