import assert from "node:assert/strict";
import { mkdtemp, rm, stat, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { asDiskError, DiskError, diskFaultOf, makeDirectory } from "./disk-fault.ts";

const systemError = (code: string, syscall = "write", cause?: unknown) =>
  Object.assign(new Error(`${code}: ${syscall}`, { cause }), { code, syscall });

test("a disk fault is recognised by its error code, also as the cause of another error", () => {
  const faults = ["ENOSPC", "EDQUOT", "EFBIG", "EROFS", "EACCES", "EPERM", "ENOTDIR", "EDATABASE", "EIO"].map((code) =>
    diskFaultOf(systemError(code)),
  );
  const reported = [
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
  assert.deepEqual(faults, reported);
  assert.equal(diskFaultOf(new Error("not written", { cause: systemError("ENOSPC") })), "full");
  assert.equal(diskFaultOf(null), null);
  assert.equal(diskFaultOf("ENOSPC"), null);
});

test("EACCES for a port or a program is not a disk fault", () => {
  for (const syscall of ["listen", "bind", "spawn /bin/x"])
    assert.equal(diskFaultOf(systemError("EACCES", syscall)), null, syscall);
});

test("a disk error becomes one sentence with the path and the code; other errors are unchanged", () => {
  const reported = asDiskError(systemError("EROFS", "mkdir"), "'/data'");
  assert.ok(reported instanceof DiskError);
  assert.deepEqual([reported.message, reported.code], ["the disk that holds '/data' is read-only", "EROFS"]);
  assert.equal(asDiskError(reported, "'/other'"), reported);
  const bug = new TypeError("a bug");
  assert.equal(asDiskError(bug, "'/data'"), bug);
});

test("a directory is made with its parents; a file or special file system in the path is named in the error", async () => {
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
