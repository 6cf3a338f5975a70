import assert from "node:assert/strict";
import { mkdtemp, rm, stat, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { asDiskError, DiskError, diskFaultOf, makeDirectory } from "./disk-fault.ts";

const systemError = (code: string, syscall = "write", cause?: unknown) =>
  Object.assign(new Error(`${code}: ${syscall}`, { cause }), { code, syscall });

test("what a disk refuses is told from its code, also where it is the cause of another error", () => {
  const faults = ["ENOSPC", "EDQUOT", "EFBIG", "EROFS", "EACCES", "EPERM", "ENOTDIR", "EDATABASE", "EIO"].map((code) =>
    diskFaultOf(systemError(code)),
  );
  const told = [
    "full",
    "full",
    "file-too-large",
    "read-only",
    "forbidden",
    "forbidden",
    "no-directory",
    "unreachable",
    null,
  ];
  assert.deepEqual(faults, told);
  assert.equal(diskFaultOf(new Error("not written", { cause: systemError("ENOSPC") })), "full");
  assert.equal(diskFaultOf(null), null);
  assert.equal(diskFaultOf("ENOSPC"), null);
});

test("a port or a program that this user may not use is no fault of a disk", () => {
  for (const syscall of ["listen", "bind", "spawn /bin/x"])
    assert.equal(diskFaultOf(systemError("EACCES", syscall)), null, syscall);
});

test("an error of a disk becomes one sentence that names the place and keeps the code; others stay as they are", () => {
  const told = asDiskError(systemError("EROFS", "mkdir"), "'/data'");
  assert.ok(told instanceof DiskError);
  assert.deepEqual([told.message, told.code], ["the disk that holds '/data' is read-only", "EROFS"]);
  assert.equal(asDiskError(told, "'/other'"), told);
  const bug = new TypeError("a bug");
  assert.equal(asDiskError(bug, "'/data'"), bug);
});

test("a directory is made with those above it; where a file or a special file system is in its way the sentence names it", async () => {
  const directory = await mkdtemp(join(tmpdir(), "galatea-disk-"));
  await makeDirectory(join(directory, "a/b/c"));
  await makeDirectory(join(directory, "a/b/c"));
  assert.ok((await stat(join(directory, "a/b/c"))).isDirectory());
  await writeFile(join(directory, "file"), "");
  for (const path of [join(directory, "file"), join(directory, "file/x/y")])
    await assert.rejects(makeDirectory(path), { message: `a parent of '${path}' is not a directory`, code: "ENOTDIR" });
  const socket = join(directory, "socket");
  const server = createServer().listen(socket);
  await new Promise((resolve) => server.once("listening", resolve));
  await assert.rejects(makeDirectory(join(socket, "x")), { name: "DiskError", code: "ENOTDIR" });
  server.close();
  await rm(directory, { recursive: true });
});
