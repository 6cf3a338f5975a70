import assert from "node:assert/strict";
import { closeSync, openSync, readFileSync, writeSync } from "node:fs";
import { link, mkdtemp, rename, rm, symlink, truncate, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { SharedFiles, type SharedFile } from "./shared-files.ts";

const options = { bytesMax: 100_000, fileBytesMin: 1000 };
const bytesOf = ({ fd }: SharedFile) => readFileSync(`/proc/self/fd/${fd}`);
const filled = (value: number, count = 50_000) => Buffer.alloc(count, value);

async function inDirectory(work: (path: (name: string) => string) => Promise<void>): Promise<void> {
  const directory = await mkdtemp(join(tmpdir(), "galatea-shared-files-"));
  try {
    await work((name) => join(directory, name));
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}

test("equal files are in memory once, under any name, and are released with their last holder", () =>
  inDirectory(async (path) => {
    const files = new SharedFiles(options);
    await writeFile(path("a"), filled(1));
    await link(path("a"), path("b"));
    await writeFile(path("c"), filled(1));
    const held = await Promise.all(["a", "a", "b", "c"].map((name) => files.open(path(name))));
    assert.equal(new Set(held.map((one) => one!.fd)).size, 1);
    assert.equal(files.bytes, 50_000);
    assert.ok(bytesOf(held[3]!).equals(filled(1)));
    for (const one of held.slice(1)) one![Symbol.dispose]();
    // Disposing a file twice has no further effect.
    held[1]![Symbol.dispose]();
    assert.ok(bytesOf(held[0]!).equals(filled(1)));
    held[0]![Symbol.dispose]();
    assert.equal(files.bytes, 0);
    assert.throws(() => bytesOf(held[0]!));
  }));

test("a file is charged once, to its oldest holder, and to the next one after its release", () =>
  inDirectory(async (path) => {
    const files = new SharedFiles(options);
    await writeFile(path("a"), filled(1));
    await writeFile(path("c"), filled(1));
    const held = [(await files.open(path("a")))!, (await files.open(path("c")))!, (await files.open(path("a")))!];
    const reported: number[] = [];
    for (const [index, one] of held.entries()) one.onCharged = () => reported.push(index);
    const charged = () => held.map((one) => one.chargedBytes);
    assert.deepEqual(charged(), [50_000, 0, 0]);
    assert.deepEqual(
      await Promise.all(["a", "c", "absent"].map((name) => files.leasedBytesOf(path(name)))),
      [50_000, 50_000, 0],
    );
    held[1]![Symbol.dispose]();
    assert.deepEqual([charged(), reported], [[50_000, 0, 0], []]);
    held[0]![Symbol.dispose]();
    assert.deepEqual([charged(), reported], [[0, 0, 50_000], [2]]);
    held[2]![Symbol.dispose]();
    assert.deepEqual([charged(), reported], [[0, 0, 0], [2]]);
    assert.equal(await files.leasedBytesOf(path("a")), 0);
  }));

test("referenced bytes do not change with the file, and a later opening gets the new bytes", () =>
  inDirectory(async (path) => {
    const files = new SharedFiles(options);
    await writeFile(path("a"), filled(1, 20_000));
    using before = (await files.open(path("a")))!;
    await writeFile(path("a"), filled(2, 20_000));
    using written = (await files.open(path("a")))!;
    await writeFile(path("b"), filled(3, 20_000));
    await rename(path("b"), path("a"));
    using renamed = (await files.open(path("a")))!;
    await truncate(path("a"), 0);
    assert.deepEqual(
      [before, written, renamed].map((one) => bytesOf(one)[19_999]),
      [1, 2, 3],
    );
  }));

test("referenced bytes cannot be written", () =>
  inDirectory(async (path) => {
    const files = new SharedFiles(options);
    await writeFile(path("a"), filled(1));
    using held = (await files.open(path("a")))!;
    assert.throws(() => writeSync(held.fd, "x", 0), { code: "EPERM" });
    const again = openSync(`/proc/self/fd/${held.fd}`, "r+");
    assert.throws(() => writeSync(again, "x", 0), { code: "EPERM" });
    closeSync(again);
  }));

test("small files, special files, links, missing files, and files over the limit are not shared", () =>
  inDirectory(async (path) => {
    const files = new SharedFiles(options);
    await writeFile(path("small"), filled(1, 999));
    await writeFile(path("a"), filled(1, 60_000));
    await writeFile(path("b"), filled(2, 60_000));
    await symlink(path("a"), path("link"));
    for (const name of ["small", "absent", "link", "."]) assert.equal(await files.open(path(name)), null, name);
    const [a, b] = await Promise.all([files.open(path("a")), files.open(path("b"))]);
    assert.ok((a === null) !== (b === null));
    (a ?? b)![Symbol.dispose]();
    using later = await files.open(path("b"));
    assert.ok(later !== null);
  }));
