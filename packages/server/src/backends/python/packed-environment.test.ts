import assert from "node:assert/strict";
import { lstat, mkdir, mkdtemp, readdir, readFile, readlink, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, test } from "node:test";
import { gzipSync } from "node:zlib";
import { Header } from "tar";
import { unpackEnvironment } from "./packed-environment.ts";

interface Entry {
  readonly path: string;
  readonly type?: "File" | "Directory" | "SymbolicLink" | "Link" | "CharacterDevice" | "FIFO";
  readonly linkpath?: string;
  readonly mode?: number;
  readonly body?: string;
}

let directory: string;
let target: string;
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), "galatea-packed-"));
  target = join(directory, "target");
  await mkdir(target);
  await mkdir(join(directory, "outside"));
  await writeFile(join(directory, "outside", "secret"), "secret");
});
// The removal is retried, because a write may still be in progress when an archive was rejected.
afterEach(() => rm(directory, { recursive: true, force: true, maxRetries: 9, retryDelay: 50 }));

async function unpack(entries: readonly Entry[], limits = { bytesMax: 2 ** 20, entriesMax: 100 }): Promise<void> {
  const blocks = entries.flatMap(({ path, type = "File", linkpath, mode = 0o644, body = "" }) => {
    const header = new Header({
      path,
      type,
      mode,
      size: body.length,
      mtime: new Date(0),
      ...(linkpath && { linkpath }),
    });
    const block = Buffer.alloc(512);
    header.encode(block, 0);
    const padded = Buffer.alloc(Math.ceil(body.length / 512) * 512);
    padded.write(body);
    return [block, padded];
  });
  const archive = join(directory, "env.tar.gz");
  await writeFile(archive, gzipSync(Buffer.concat([...blocks, Buffer.alloc(1024)])));
  await unpackEnvironment(archive, target, limits, new AbortController().signal);
}

test("links to outside, such as a virtual environment's link to its interpreter, are created unchanged", async () => {
  await unpack([
    { path: "bin/python3", type: "SymbolicLink", linkpath: "/usr/bin/python3" },
    { path: "bin/python", type: "SymbolicLink", linkpath: "python3" },
    { path: "share/up", type: "SymbolicLink", linkpath: "../../../elsewhere" },
    { path: "share/info", type: "SymbolicLink", linkpath: "../lib/info" },
    { path: "bin/tool", mode: 0o755, body: "#!" },
  ]);
  assert.equal(await readlink(join(target, "bin/python3")), "/usr/bin/python3");
  assert.equal(await readlink(join(target, "bin/python")), "python3");
  assert.equal(await readlink(join(target, "share/up")), "../../../elsewhere");
  assert.equal(await readlink(join(target, "share/info")), "../lib/info");
});

test("unpacked files are readable by all users, writable only by their owner, and never set-user-ID", async () => {
  await unpack([
    { path: "lib/", type: "Directory", mode: 0o700 },
    { path: "lib/closed.py", mode: 0o600, body: "x" },
    { path: "lib/tool", mode: 0o6777, body: "x" },
  ]);
  const modeOf = async (path: string) => (await lstat(join(target, path))).mode & 0o7777;
  assert.equal(await modeOf("lib"), 0o755);
  assert.equal(await modeOf("lib/closed.py"), 0o644);
  assert.equal(await modeOf("lib/tool"), 0o755);
});

const out = "../outside";
const refusals: readonly (readonly [name: string, entries: readonly Entry[], why: RegExp])[] = [
  ["a path that leads up", [{ path: "../outside/new", body: "x" }], /contains '\.\.'/],
  ["an absolute path", [{ path: "/etc/galatea-test", body: "x" }], /absolute path/],
  [
    "a file below a link of its own that leads out",
    [
      { path: "a", type: "SymbolicLink", linkpath: out },
      { path: "a/new", body: "x" },
    ],
    /EEXIST/,
  ],
  [
    "a link below a link that leads out",
    [
      { path: "a", type: "SymbolicLink", linkpath: out },
      { path: "a/deeper/link", type: "SymbolicLink", linkpath: "/etc" },
    ],
    /is below 'a'/,
  ],
  [
    "a link whose own path leads up",
    [{ path: "../outside/l", type: "SymbolicLink", linkpath: "/etc" }],
    /points outside/,
  ],
  ["a hard link to a file outside", [{ path: "h", type: "Link", linkpath: "../outside/secret" }], /contains '\.\.'/],
  ["a hard link to an absolute path", [{ path: "h", type: "Link", linkpath: "/etc/passwd" }], /absolute linkpath/],
  ["a device", [{ path: "null", type: "CharacterDevice" }], /is a CharacterDevice/],
  ["a pipe", [{ path: "pipe", type: "FIFO" }], /is a FIFO/],
];

for (const [name, entries, why] of refusals)
  test(`rejected without writing or reading outside: ${name}`, async () => {
    await assert.rejects(unpack(entries), { code: "INVALID_ARG", message: why });
    assert.deepEqual(await readdir(join(directory, "outside")), ["secret"]);
    assert.deepEqual((await readdir(directory)).sort(), ["env.tar.gz", "outside", "target"]);
    assert.equal(await readFile(join(directory, "outside", "secret"), "utf8"), "secret");
  });

test("an archive whose header announces too many bytes is rejected before it is written", async () => {
  const large = { path: "large", body: "x".repeat(3000) };
  const tooLarge = { code: "INVALID_ARG", message: /larger than allowed/ };
  await assert.rejects(unpack([large], { bytesMax: 2999, entriesMax: 9 }), tooLarge);
  assert.deepEqual(await readdir(target), []);
  const many = Array.from({ length: 10 }, (_, index) => ({ path: `file${index}` }));
  await assert.rejects(unpack(many, { bytesMax: 2 ** 20, entriesMax: 9 }), tooLarge);
});

test("the number of links to outside is limited", async () => {
  const links = Array.from({ length: 1001 }, (_, index): Entry => {
    return { path: `l${index}`, type: "SymbolicLink", linkpath: "/x" };
  });
  await assert.rejects(unpack(links, { bytesMax: 2 ** 20, entriesMax: 2000 }), { message: /too many links/ });
});
