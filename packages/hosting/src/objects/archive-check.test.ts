import assert from "node:assert/strict";
import { chmod, mkdir, mkdtemp, readdir, readlink, rm, symlink, unlink, writeFile } from "node:fs/promises";
import { createHash } from "node:crypto";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test, type TestContext } from "node:test";
import type { UnpackedArchive } from "./archive.ts";
import { isTreeUnchanged } from "./archive-check.ts";
import { ArchiveUnpacker, unpackerDefaults } from "./archive-unpacker.ts";
import { archiveLimits } from "./archive.ts";

const never = new AbortController().signal;
const body = Buffer.alloc(3 * 2 ** 20 + 7, "b");

async function tree(context: TestContext): Promise<{ folder: string; described: UnpackedArchive }> {
  const folder = await mkdtemp(join(tmpdir(), "galatea-check-"));
  context.after(() => rm(folder, { recursive: true }));
  await mkdir(join(folder, "a/empty"), { recursive: true });
  await writeFile(join(folder, "a/file"), body);
  await symlink("file", join(folder, "a/link"));
  const sha256 = createHash("sha256").update(body).digest("hex");
  const described = {
    files: [{ path: "a/file", byteLength: body.byteLength, sha256 }],
    places: [
      { path: "a", linkTarget: null },
      { path: "a/empty", linkTarget: null },
      { path: "a/link", linkTarget: "file" },
    ],
    expandedBytes: body.byteLength,
    ownBytes: body.byteLength,
    contents: [],
    fingerprint: "",
  };
  return { folder, described };
}

test("an unchanged tree is complete, also for an unpacking thread", async (context) => {
  const { folder, described } = await tree(context);
  assert.equal(await isTreeUnchanged(folder, described, never), true);
  const options = { ...unpackerDefaults, contentDirectory: null, limits: archiveLimits };
  await using unpacker = new ArchiveUnpacker(options);
  assert.equal(await unpacker.check(folder, described, never), true);
  await assert.rejects(unpacker.check(join(folder, "none"), described, never), /ENOENT/);
  await assert.rejects(unpacker.check(folder, described, AbortSignal.abort(new Error("left"))), /left/);
});

const changes: Readonly<Record<string, (folder: string) => Promise<void>>> = {
  "a file with another byte": (folder) =>
    writeFile(join(folder, "a/file"), Buffer.concat([body.subarray(1), Buffer.of(1)])),
  "a longer file": (folder) => writeFile(join(folder, "a/file"), Buffer.concat([body, Buffer.of(1)])),
  "no file": (folder) => unlink(join(folder, "a/file")),
  "one more file": (folder) => writeFile(join(folder, "a/more"), ""),
  "one more directory": (folder) => mkdir(join(folder, "2")),
  "a directory less": (folder) => rm(join(folder, "a/empty"), { recursive: true }),
  "another link": async (folder) => {
    await unlink(join(folder, "a/link"));
    await symlink("../file", join(folder, "a/link"));
  },
  "a link in place of a file": async (folder) => {
    await writeFile(`${folder}/a/empty/x`, body);
    await unlink(join(folder, "a/file"));
    await symlink("empty/x", join(folder, "a/file"));
  },
  "a file in place of a link": async (folder) => {
    await unlink(join(folder, "a/link"));
    await writeFile(join(folder, "a/link"), body);
  },
};

for (const [what, change] of Object.entries(changes)) {
  test(`a tree with ${what} is incomplete or changed`, async (context) => {
    const { folder, described } = await tree(context);
    await chmod(join(folder, "a/file"), 0o644);
    await change(folder);
    assert.equal(await isTreeUnchanged(folder, described, never), false);
  });
}

test("an aborted check stops reading and leaves no file open", async (context) => {
  const folder = await mkdtemp(join(tmpdir(), "galatea-check-"));
  context.after(() => rm(folder, { recursive: true }));
  const large = Buffer.alloc(9 * 2 ** 20, "b");
  await writeFile(join(folder, "file"), large);
  const sha256 = createHash("sha256").update(large).digest("hex");
  const file = { path: "file", byteLength: large.byteLength, sha256 };
  const described = { files: [file], places: [], expandedBytes: 0, ownBytes: 0, contents: [], fingerprint: "" };
  const openBelow = async () => {
    const names = await readdir("/proc/self/fd");
    const links = await Promise.all(names.map((name) => readlink(`/proc/self/fd/${name}`).catch(() => "")));
    return links.filter((link) => link.startsWith(folder));
  };
  const disconnect = new AbortController();
  const checking = isTreeUnchanged(folder, described, disconnect.signal);
  disconnect.abort(new Error("left"));
  await assert.rejects(checking, { message: "left" });
  assert.equal(await isTreeUnchanged(folder, described, never), true);
  assert.deepEqual(await openBelow(), []);
});
