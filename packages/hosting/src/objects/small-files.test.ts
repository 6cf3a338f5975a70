import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdir, mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { SmallFiles } from "./small-files.ts";

const countOfMany = 60;

async function inFolder(task: (folder: string) => Promise<void>): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), "galatea-small-"));
  try {
    await task(folder);
  } finally {
    await rm(folder, { recursive: true });
  }
}

/** Returns the content of a file as two buffers. */
const buffersOf = (number: number) => [Buffer.from(`file ${number}\n`), Buffer.from("x".repeat(number * 7))];

function createMany(files: SmallFiles, folder: string): Promise<PromiseSettledResult<void>[]> {
  const numbers = Array.from({ length: countOfMany }, (_, number) => number);
  return Promise.allSettled(numbers.map((number) => files.create(join(folder, String(number)), buffersOf(number))));
}

async function holdsWhole(folder: string, number: number): Promise<void> {
  assert.deepEqual(await readFile(join(folder, String(number))), Buffer.concat(buffersOf(number)));
}

test("concurrently created files are complete when they are acknowledged, and no other file is left", async () => {
  await inFolder(async (folder) => {
    const files = new SmallFiles();
    for (const { status } of await createMany(files, folder)) assert.equal(status, "fulfilled");
    assert.equal((await readdir(folder)).length, countOfMany);
    for (let number = 0; number < countOfMany; number += 1) await holdsWhole(folder, number);
    await files[Symbol.asyncDispose]();
  });
});

test("a file that cannot be created fails with the error of the disk and leaves nothing; the others of its group are there", async () => {
  await inFolder(async (folder) => {
    const files = new SmallFiles();
    // Two writes fail, because directories exist at their temporary paths.
    for (const number of [7, 40]) await mkdir(join(folder, `${number}.tmp`, "held"), { recursive: true });
    const outcomes = await createMany(files, folder);
    const failed = outcomes.flatMap((outcome, number) => (outcome.status === "rejected" ? [number] : []));
    assert.deepEqual(failed, [7, 40]);
    for (const outcome of outcomes)
      if (outcome.status === "rejected") assert.match(String(outcome.reason), /EEXIST|EISDIR/);
    for (let number = 0; number < countOfMany; number += 1)
      if (!failed.includes(number)) await holdsWhole(folder, number);
    assert.equal((await readdir(folder)).filter((name) => !name.endsWith(".tmp")).length, countOfMany - failed.length);
    await files[Symbol.asyncDispose]();
  });
});

test("a file whose folder cannot be synced is not acknowledged, and is removed", async () => {
  await inFolder(async (folder) => {
    const files = new SmallFiles();
    const broken = () => Promise.reject(new Error("the folder is not on the disk"));
    const numbers = Array.from({ length: 8 }, (_, number) => number);
    const outcomes = await Promise.allSettled(
      numbers.map((number) => files.create(join(folder, String(number)), buffersOf(number), [broken])),
    );
    for (const outcome of outcomes) {
      assert.equal(outcome.status, "rejected");
      assert.match(String(outcome.reason), /the folder is not on the disk/);
    }
    assert.deepEqual(await readdir(folder), []);
    await files[Symbol.asyncDispose]();
  });
});

test("on a full disk files fail with ENOSPC and leave nothing; with free space they are written", async (context) => {
  if (process.getuid?.() !== 0) return context.skip("mounting a small disk needs root");
  await inFolder(async (folder) => {
    const disk = join(folder, "disk");
    await mkdir(disk);
    execFileSync("mount", ["-t", "tmpfs", "-o", "size=96k", "tmpfs", disk], { stdio: "pipe" });
    const files = new SmallFiles();
    try {
      const large = () => [Buffer.alloc(16 * 1024, "a")];
      const names = Array.from({ length: 24 }, (_, number) => `of-${number}`);
      const outcomes = await Promise.allSettled(names.map((name) => files.create(join(disk, name), large())));
      const written = names.filter((_, index) => outcomes[index]?.status === "fulfilled");
      assert.ok(written.length > 0 && written.length < names.length, `${written.length} were written`);
      for (const outcome of outcomes)
        if (outcome.status === "rejected") assert.equal((outcome.reason as NodeJS.ErrnoException).code, "ENOSPC");
      assert.deepEqual((await readdir(disk)).toSorted(), written.toSorted());
      for (const name of written) {
        assert.equal((await readFile(join(disk, name))).length, 16 * 1024);
        await rm(join(disk, name));
      }
      const again = Array.from({ length: 4 }, (_, number) => files.create(join(disk, `again-${number}`), large()));
      await Promise.all(again);
    } finally {
      await files[Symbol.asyncDispose]();
      execFileSync("umount", [disk]);
    }
  });
});

test("closing the writer waits for files that are being created", async () => {
  await inFolder(async (folder) => {
    const files = new SmallFiles();
    const many = createMany(files, folder);
    await files[Symbol.asyncDispose]();
    for (const { status } of await many) assert.equal(status, "fulfilled");
    for (let number = 0; number < countOfMany; number += 1) await holdsWhole(folder, number);
  });
});
