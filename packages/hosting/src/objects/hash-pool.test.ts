import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { accessSync, constants, readdirSync, readFileSync } from "node:fs";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { getPriority, tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { systemClock, type Clock } from "@galatea/base";
import { childrenOf, readProcessFile } from "@galatea/base/processes";
import { HashPool } from "./hash-pool.ts";

const root = await mkdtemp(join(tmpdir(), "galatea-hash-pool-"));
after(() => rm(root, { recursive: true, force: true }));

const path = join(root, "body");
const body = Buffer.alloc(3 * 2 ** 20, "bytes of a body ");
await writeFile(path, body);
const md5 = createHash("md5").update(body).digest("base64");

/** Resolves with the ids of the hashing processes that this process has started. */
async function hashingPids(): Promise<number[]> {
  const children = childrenOf(process.pid);
  const named = children.map(async (pid) => ({ pid, line: await readProcessFile(pid, "cmdline") }));
  return (await Promise.all(named))
    .filter(({ line }) => line?.includes("hash-process-worker") === true)
    .map(({ pid }) => pid);
}

/**
 * Returns true if Linux schedules by session (autogroup) and accepts every change of a session's niceness. Without
 * CAP_SYS_ADMIN, Linux accepts only ten changes per second in total.
 */
function canBeNice(): boolean {
  const [, effective = "0"] = /^CapEff:\s*([0-9a-f]+)$/m.exec(readFileSync("/proc/self/status", "utf8")) ?? [];
  const administersSystem = (BigInt(`0x${effective}`) >> 21n) % 2n === 1n;
  try {
    accessSync("/proc/self/autogroup", constants.W_OK);
    return administersSystem;
  } catch {
    return false;
  }
}

/** Returns the niceness of each thread of a process that differs from this process's niceness. */
function nicerThreads(pid: number): readonly (string | undefined)[] {
  const own = String(getPriority());
  const niceness = readdirSync(`/proc/${pid}/task`).map((task) => {
    const stat = readFileSync(`/proc/${pid}/task/${task}/stat`, "utf8");
    return stat.slice(stat.lastIndexOf(")") + 2).split(" ")[16];
  });
  return niceness.filter((each) => each !== own);
}

test("concurrent bodies are hashed in separate threads, up to the maximum of the pool", async () => {
  for (const threadsMax of [1, 2]) {
    await using pool = new HashPool(systemClock, threadsMax);
    const hashes = Array.from({ length: 4 }, () => pool.follow(path, ["md5"], 0));
    const digests = await Promise.all(hashes.map((hash) => hash.end(body.byteLength)));
    assert.deepEqual(
      digests,
      hashes.map(() => ({ md5 })),
    );
    const [pid = 0] = await hashingPids();
    assert.equal(nicerThreads(pid).length, threadsMax);
    for (const hash of hashes) hash[Symbol.dispose]();
  }
});

test("a file is hashed while it is written, by a process of low priority", async () => {
  await using pool = new HashPool(systemClock, 1);
  using hash = pool.follow(path, ["md5"], 0);
  hash.written(2 ** 20);
  assert.deepEqual(await hash.end(body.byteLength), { md5 });
  const [pid = 0, ...others] = await hashingPids();
  assert.deepEqual(others, []);
  // The niceness of this process may differ from 0.
  assert.deepEqual(nicerThreads(pid), [String(Math.min(19, getPriority() + 5))]);
  if (!canBeNice()) return;
  assert.match(readFileSync(`/proc/${pid}/autogroup`, "utf8"), /nice 5\n$/);
});

test("a range of a file has its own digests, and a range beyond the end of the file is an error", async () => {
  await using pool = new HashPool(systemClock, 1);
  using stretch = pool.follow(path, ["md5"], 16);
  const expected = createHash("md5").update(body.subarray(16, 48)).digest("base64");
  assert.deepEqual(await stretch.end(32), { md5: expected });
  using cut = pool.follow(path, ["md5"], 0);
  const text = `hashing failed: the file ended at ${body.byteLength} of ${body.byteLength + 1} bytes`;
  await assert.rejects(cut.end(body.byteLength + 1), { message: text });
  using absent = pool.follow(join(root, "absent"), ["md5"], 0);
  await assert.rejects(absent.end(1), /hashing failed: ENOENT/);
});

test("a killed process fails the bodies that it hashed, and the next body starts another process", async () => {
  await using pool = new HashPool(systemClock, 1);
  using first = pool.follow(path, ["md5"], 0);
  await first.end(body.byteLength);
  const [killed = 0] = await hashingPids();
  process.kill(killed, "SIGSTOP");
  using second = pool.follow(path, ["md5"], 0);
  const failed = assert.rejects(second.end(body.byteLength), {
    message: /the hashing process has ended: .*SIGKILL/,
  });
  process.kill(killed, "SIGKILL");
  await failed;
  using third = pool.follow(path, ["md5"], 0);
  assert.deepEqual(await third.end(body.byteLength), { md5 });
  assert.notDeepEqual(await hashingPids(), [killed]);
});

test("a process ends after a minute without a body", async () => {
  const armed: { delayMs: number; fire: () => void; isOff: boolean }[] = [];
  const clock: Clock = {
    ...systemClock,
    timer(delayMs, fire) {
      const timer = { delayMs, fire, isOff: false };
      armed.push(timer);
      return { [Symbol.dispose]: () => void (timer.isOff = true) };
    },
  };
  await using pool = new HashPool(clock, 1);
  const hashed = async () => {
    using hash = pool.follow(path, ["md5"], 0);
    assert.deepEqual(await hash.end(body.byteLength), { md5 });
  };
  await hashed();
  const [first] = armed.splice(0);
  assert.equal(first?.delayMs, 60_000);
  await hashed();
  assert.equal(first.isOff, true);
  const before = await hashingPids();
  const [second] = armed.splice(0);
  second?.fire();
  await hashed();
  assert.notDeepEqual(
    (await hashingPids()).filter((pid) => !before.includes(pid)),
    [],
  );
});
