import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir, mkdtemp, readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, test } from "node:test";
import { systemClock, type Clock } from "@galatea/base";
import { DirectoryCache, evictionOrder, type CreateFiles } from "./directory-cache.ts";
import { testTimeoutMs } from "@galatea/base/core/eventually-fixture.ts";

const signal = AbortSignal.timeout(testTimeoutMs);
let directory: string;
let nowMs: number;
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), "galatea-kept-"));
  nowMs = 1_700_000_000_000;
});
afterEach(() => rm(directory, { recursive: true, force: true }));

/** A clock that advances by one second at each call. */
const clock: Clock = { ...systemClock, epochMs: () => (nowMs += 1000) };
const keep = (bytesMax: number) => new DirectoryCache({ directory: join(directory, "kept"), bytesMax, clock });

const ofBytes =
  (byteCount: number): CreateFiles =>
  async (files) => {
    await writeFile(join(files, "content"), "content");
    return byteCount;
  };
const never: CreateFiles = () => Promise.reject(new Error("the directory is created twice"));

const names = async () => (await readdir(join(directory, "kept"))).sort();

async function use(kept: DirectoryCache, name: string, make: CreateFiles): Promise<void> {
  (await kept.hold(name, make, signal))[Symbol.dispose]();
}

test("a directory is created once for all its holders, concurrent and later ones", async () => {
  const kept = keep(1000);
  let generated = 0;
  const requested = Promise.withResolvers<void>();
  const make: CreateFiles = async (files) => {
    generated++;
    await requested.promise;
    return await ofBytes(10)(files);
  };
  const acquired = [1, 2, 3].map(() => kept.hold("one", make, signal));
  requested.resolve();
  const lease = await Promise.all(acquired);
  assert.equal(generated, 1);
  for (const each of lease) {
    assert.equal(await readFile(join(each.directory, "content"), "utf8"), "content");
    each[Symbol.dispose]();
  }
  using _again = await keep(1000).hold("one", never, signal);
});

test("over the limit the least recently used unused directory is deleted, and directories in use remain", async () => {
  const kept = keep(100);
  using _held = await kept.hold("held", ofBytes(30), signal);
  await use(kept, "old", ofBytes(30));
  await use(kept, "middle", ofBytes(30));
  await use(kept, "old", never);
  await use(kept, "new", ofBytes(30));
  assert.deepEqual(await names(), ["held", "new", "old"]);
  await use(kept, "newer", ofBytes(70));
  assert.deepEqual(await names(), ["held", "newer"]);
});

test("a directory in use by another cache or process is not deleted", async () => {
  const [ours, theirs] = [keep(50), keep(50)];
  const lease = await theirs.hold("theirs", ofBytes(40), signal);
  await use(ours, "ours", ofBytes(40));
  assert.deepEqual(await names(), ["ours", "theirs"]);
  lease[Symbol.dispose]();
  await use(ours, "next", ofBytes(40));
  assert.deepEqual(await names(), ["next"]);
});

test("a killed process keeps no directory in use, and a directory that it was creating is created again", async () => {
  const program = `
    import { systemClock } from ${JSON.stringify(new URL("../../../../base/src/core/index.ts", import.meta.url).href)};
    import { DirectoryCache } from ${JSON.stringify(new URL("./directory-cache.ts", import.meta.url).href)};
    import { writeFile } from "node:fs/promises";
    const kept = new DirectoryCache({ directory: process.argv[1], bytesMax: 100, clock: systemClock });
    const signal = new AbortController().signal;
    await kept.hold("held", async () => 80, signal);
    kept.hold("half", async (files) => {
      await writeFile(files + "/half", "");
      console.log("making");
      await new Promise((resolve) => setTimeout(resolve, 2 ** 30));
    }, signal);
  `;
  const child = spawn(process.execPath, ["--input-type=module", "-e", program, join(directory, "kept")], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  await once(child.stdout, "data");
  const kept = keep(100);
  await use(kept, "own", ofBytes(80));
  assert.deepEqual(await names(), ["half", "held", "own"]);
  child.kill("SIGKILL");
  await once(child, "exit");
  using half = await kept.hold("half", ofBytes(80), signal);
  assert.deepEqual(await readdir(half.directory), ["content"]);
  assert.deepEqual(await names(), ["half"]);
});

test("a failed creation leaves no files, and the next call creates the directory", async () => {
  const kept = keep(100);
  const failing: CreateFiles = async (files) => {
    await writeFile(join(files, "half"), "");
    throw new Error("no more");
  };
  await assert.rejects(kept.hold("one", failing, signal), { message: "no more" });
  assert.deepEqual(await names(), []);
  await assert.rejects(kept.hold("one", ofBytes(101), signal), {
    code: "INVALID_ARG",
    message: /101 bytes, more than/,
  });
  assert.deepEqual(await names(), []);
  using lease = await kept.hold("one", ofBytes(100), signal);
  assert.deepEqual(await readdir(lease.directory), ["content"]);
});

test("the bytes of a directory are counted if its creator does not report them", async () => {
  const kept = keep(2 ** 20);
  const large: CreateFiles = async (files) => {
    await mkdir(join(files, "below"));
    await writeFile(join(files, "below", "large"), Buffer.alloc(600_000, 1));
    return null;
  };
  await use(kept, "one", large);
  await use(kept, "two", large);
  assert.deepEqual(await names(), ["two"]);
});

test("only the server's user may open a lock, and half-deleted directories are deleted", async () => {
  await mkdir(join(directory, "kept", ".gone-1", "files"), { recursive: true });
  const kept = keep(100);
  await use(kept, "one", ofBytes(10));
  assert.deepEqual(await names(), ["one"]);
  assert.equal((await stat(join(directory, "kept", "one", "lock"))).mode & 0o777, 0o600);
});

test("a wait for another process's creation ends with its signal", async () => {
  const kept = keep(100);
  const started = Promise.withResolvers<void>();
  const end = Promise.withResolvers<void>();
  const slow: CreateFiles = async (files) => {
    started.resolve();
    await end.promise;
    return await ofBytes(1)(files);
  };
  const making = kept.hold("one", slow, signal);
  await started.promise;
  await assert.rejects(keep(100).hold("one", never, AbortSignal.timeout(50)), { name: "TimeoutError" });
  end.resolve();
  (await making)[Symbol.dispose]();
});

test("incomplete directories are evicted first, then the least recently used", () => {
  const entries = [
    { name: "new", byteCount: 1, usedMs: 3 },
    { name: "cut", byteCount: 0, usedMs: 4 },
    { name: "old", byteCount: 1, usedMs: 2 },
  ];
  assert.deepEqual(
    evictionOrder(entries).map(({ name }) => name),
    ["cut", "old", "new"],
  );
});
