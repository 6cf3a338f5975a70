import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import {
  closeSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readFileSync,
  readdirSync,
  rmSync,
  statSync,
  writeFileSync,
  writeSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable } from "node:stream";
import { after, test } from "node:test";
import { gzipSync } from "node:zlib";
import { Header, Pax } from "tar";
import { ArchiveError, archiveLimits, type ArchiveLimits } from "./archive.ts";
import { ArchiveUnpacker } from "./archive-unpacker.ts";
import { deleteUnlinkedContents } from "./archive-content.ts";
import { eventually, testTimeoutMs } from "@galatea/base/core/eventually-fixture.ts";

const root = mkdtempSync(join(tmpdir(), "galatea-archive-"));
after(() => rmSync(root, { recursive: true, force: true }));

type Row = { path: string; type?: string; body?: Buffer | string; linkpath?: string; mode?: number; pax?: boolean };

function tar(rows: readonly Row[]): Buffer {
  const parts: Buffer[] = [];
  for (const { path, type = "File", body = "", linkpath, mode = 0o644, pax = false } of rows) {
    const bytes = Buffer.from(body);
    if (pax) parts.push(new Pax({ path }).encode());
    const header = new Header({
      path: pax ? path.slice(-90) : path,
      type: type as "File",
      size: bytes.length,
      mode,
      mtime: new Date(0),
      ...(linkpath === undefined ? {} : { linkpath }),
    });
    header.encode();
    assert(header.block);
    parts.push(header.block, bytes, Buffer.alloc((512 - (bytes.length % 512)) % 512));
  }
  return Buffer.concat([...parts, Buffer.alloc(1024)]);
}

let folderCount = 0;

async function unpack(
  bytes: Buffer,
  options: {
    limits?: Partial<ArchiveLimits>;
    chunkBytes?: number;
    onProgress?: (n: number) => void;
    content?: string;
  } = {},
) {
  const destination = join(root, `tree-${(folderCount += 1)}`);
  await using unpacker = new ArchiveUnpacker({
    threadCount: 1,
    aheadBytesMax: 256 * 1024,
    sharedBytesMin: 4096,
    contentDirectory: options.content ?? null,
    limits: { ...archiveLimits, ...options.limits },
  });
  const chunks: Buffer[] = [];
  const step = options.chunkBytes ?? 64 * 1024;
  for (let at = 0; at < bytes.length; at += step) chunks.push(bytes.subarray(at, at + step));
  const { onProgress } = options;
  const tree = await unpacker
    .unpack(Readable.from(chunks), destination, {
      signal: AbortSignal.timeout(testTimeoutMs),
      ...(onProgress === undefined ? {} : { onProgress }),
    })
    .catch((error: unknown) => {
      assert(!existsSync(destination), "a failed unpacking leaves nothing behind");
      throw error;
    });
  return { destination, tree };
}

const refused = (reason: string, text: RegExp) => (error: unknown) => {
  assert(error instanceof ArchiveError, String(error));
  assert.equal(error.reason, reason);
  assert.match(error.message, text);
  return true;
};

test("an archive made by GNU tar unpacks to the same tree, at any gzip level and chunking", async () => {
  const source = join(root, "source");
  mkdirSync(join(source, "ensemble", "1"), { recursive: true });
  mkdirSync(join(source, "d".repeat(120), "e".repeat(120)), { recursive: true });
  writeFileSync(join(source, "ensemble", "config.pbtxt"), 'platform: "ensemble"\n');
  writeFileSync(join(source, "d".repeat(120), "e".repeat(120), "long.txt"), "long");
  writeFileSync(join(source, "ensemble", "1", "weights.bin"), randomBytes(300_000));
  writeFileSync(join(source, "run.sh"), "#!/bin/sh\n", { mode: 0o755 });
  execFileSync("ln", ["-s", "ensemble/config.pbtxt", join(source, "link")]);
  execFileSync("ln", [join(source, "run.sh"), join(source, "same.sh")]);
  for (const format of ["gnu", "pax"]) {
    const plain = execFileSync("tar", [`--format=${format}`, "-C", source, "-cf", "-", "."], { maxBuffer: 2 ** 26 });
    for (const [bytes, chunkBytes] of [
      [gzipSync(plain, { level: 0 }), 65_536],
      [gzipSync(plain, { level: 6 }), 1000],
      [plain, 511],
    ] as const) {
      const { destination, tree } = await unpack(bytes, { chunkBytes });
      assert.equal(execFileSync("diff", ["-r", source, destination], { encoding: "utf8" }), "");
      assert.equal(statSync(join(destination, "run.sh")).mode & 0o777, 0o755);
      assert.equal(statSync(join(destination, "run.sh")).ino, statSync(join(destination, "same.sh")).ino);
      assert.equal(tree.files.length, 5);
    }
  }
});

test("equal files of different archives are one file on disk; a file that differs only near its end is another", async () => {
  const content = join(root, "content");
  mkdirSync(content);
  const weights = randomBytes(900_000);
  const other = Buffer.from(weights);
  other[800_000] = (other[800_000] ?? 0) ^ 1;
  const archive = (name: string, body: Buffer) => gzipSync(tar([{ path: `${name}/model.onnx`, body }]), { level: 0 });
  const first = await unpack(archive("a", weights), { content });
  const second = await unpack(archive("b", weights), { content });
  const third = await unpack(archive("c", other), { content });
  const inode = (tree: { destination: string }, name: string) =>
    statSync(join(tree.destination, name, "model.onnx")).ino;
  assert.equal(inode(first, "a"), inode(second, "b"));
  assert.notEqual(inode(first, "a"), inode(third, "c"));
  assert.deepEqual(readFileSync(join(third.destination, "c/model.onnx")), other);
  assert.deepEqual(first.tree.contents, second.tree.contents);
  assert.equal(second.tree.ownBytes, 0);
  assert.notEqual(first.tree.fingerprint, third.tree.fingerprint);
  rmSync(first.destination, { recursive: true });
  deleteUnlinkedContents(content, first.tree.contents);
  assert.deepEqual(readFileSync(join(second.destination, "b/model.onnx")), weights);
  assert.equal(readdirSync(join(content, "900000")).length, 2);
  rmSync(second.destination, { recursive: true });
  deleteUnlinkedContents(content, second.tree.contents);
  assert.equal(readdirSync(join(content, "900000")).length, 1);
});

test("a shared file that was changed on disk is not used by later archives", async () => {
  const content = join(root, "altered");
  mkdirSync(content);
  const weights = randomBytes(900_000);
  const archive = tar([{ path: "weights.bin", body: weights }]);
  const first = await unpack(archive, { content });
  const altered = join(first.destination, "weights.bin");
  const file = openSync(altered, "r+");
  writeSync(file, Buffer.alloc(100), 0, 100, 850_000);
  closeSync(file);
  for (let round = 0; round < 2; round++) {
    const later = await unpack(archive, { content });
    assert(readFileSync(join(later.destination, "weights.bin")).equals(weights), `archive ${round}`);
    assert.deepEqual(readdirSync(later.destination), ["weights.bin"]);
    assert.deepEqual(later.tree.contents, first.tree.contents);
  }
  const [stored = ""] = readdirSync(join(content, "900000"));
  assert(readFileSync(join(content, "900000", stored)).equals(weights));
  assert.notEqual(statSync(join(content, "900000", stored)).ino, statSync(altered).ino);
});

test("a shared file is read-only", async () => {
  const content = join(root, "read-only");
  mkdirSync(content);
  const { destination } = await unpack(tar([{ path: "weights.bin", body: randomBytes(900_000) }]), { content });
  assert.equal(statSync(join(destination, "weights.bin")).mode & 0o777, 0o444);
});

test("the root of an archive may be named `/`, as the SageMaker SDK does; a file may not", async () => {
  const { tree } = await unpack(
    tar([
      { path: "/", type: "Directory" },
      { path: "code/inference.py", body: "pass" },
    ]),
  );
  assert.deepEqual(
    tree.files.map(({ path }) => path),
    ["code/inference.py"],
  );
  await assert.rejects(unpack(tar([{ path: "/", body: "x" }])), ArchiveError);
});

const escapes: readonly [string, readonly Row[], string, RegExp][] = [
  ["absolute path", [{ path: "/etc/x" }], "unsafe", /absolute path/],
  ["dot dot", [{ path: "a/../../x" }], "unsafe", /"\.\."/],
  ["absolute link", [{ path: "l", type: "SymbolicLink", linkpath: "/etc" }], "unsafe", /leaves the archive/],
  ["link up", [{ path: "a/l", type: "SymbolicLink", linkpath: "../../x" }], "unsafe", /leaves the archive/],
  ["hard link to nothing of ours", [{ path: "l", type: "Link", linkpath: "etc/passwd" }], "unsafe", /earlier file/],
  ["device", [{ path: "null", type: "CharacterDevice" }], "unsafe", /CharacterDevice/],
  ["fifo", [{ path: "pipe", type: "FIFO" }], "unsafe", /FIFO/],
  ["dangling link", [{ path: "l", type: "SymbolicLink", linkpath: "gone" }], "unsafe", /leads nowhere/],
  ["write through a link", [{ path: "l", type: "SymbolicLink", linkpath: "." }, { path: "l/x" }], "clash", /symlink/],
  ["twice", [{ path: "x" }, { path: "./x" }], "clash", /twice/],
  ["file as directory", [{ path: "x" }, { path: "x/y" }], "clash", /lies under/],
  [
    "chain of links that climbs",
    [
      { path: "t", type: "Directory" },
      { path: "a/b/c/up", type: "SymbolicLink", linkpath: "../../../t" },
      { path: "out", type: "SymbolicLink", linkpath: "a/b/c/up/../.." },
    ],
    "unsafe",
    /leaves the archive/,
  ],
  ["pax path that climbs", [{ path: "../../tmp/x", pax: true }], "unsafe", /"\.\."/],
];

for (const [name, rows, reason, text] of escapes) {
  test(`refused: ${name}`, async () => {
    await assert.rejects(unpack(gzipSync(tar(rows))), refused(reason, text));
  });
}

test("truncated, unknown and empty streams are damaged, at whatever byte they end", async () => {
  const plain = tar([{ path: "a", body: randomBytes(2000) }]);
  const packed = gzipSync(plain);
  for (const bytes of [packed.subarray(0, 30), packed.subarray(0, packed.length - 9), packed.subarray(0, 1000)]) {
    await assert.rejects(unpack(bytes), refused("damaged", /ends before/));
  }
  await assert.rejects(unpack(plain.subarray(0, 1000)), refused("damaged", /ends before/));
  await assert.rejects(unpack(Buffer.from("not an archive ".repeat(100))), refused("damaged", /checksum/));
  await assert.rejects(unpack(Buffer.alloc(0)), refused("damaged", /empty/));
  await assert.rejects(unpack(gzipSync(Buffer.from("PK".repeat(600)))), refused("damaged", /checksum/));
  const broken = Buffer.from(gzipSync(plain, { level: 0 }));
  broken[700] = (broken[700] ?? 0) ^ 0xff;
  await assert.rejects(unpack(broken), refused("damaged", /damaged/));
});

test("archives over the limits of bytes, entries, depth, path and expansion are rejected", async () => {
  const zeros = gzipSync(tar([{ path: "zeros", body: Buffer.alloc(20_000_000) }]));
  await assert.rejects(
    unpack(zeros, { limits: { expandedBytesMax: 1e6 } }),
    refused("limit", /more than 1000000 bytes/),
  );
  const ratio = { expansionRatioMax: 100, expansionBytesFree: 1e6 };
  await assert.rejects(unpack(zeros, { limits: ratio }), refused("limit", /100 times/));
  const many = gzipSync(tar(Array.from({ length: 50 }, (_, index) => ({ path: `f${index}` }))));
  await assert.rejects(unpack(many, { limits: { entryCountMax: 49 } }), refused("limit", /49 entries/));
  const deep = gzipSync(tar([{ path: `${"d/".repeat(40)}f` }]));
  await assert.rejects(unpack(deep, { limits: { depthMax: 40 } }), refused("limit", /deeper than 40/));
  const long = gzipSync(tar([{ path: "n".repeat(300), pax: true }]));
  await assert.rejects(unpack(long), refused("limit", /255 bytes/));
});

test("a quota that throws in the middle ends the unpacking with its error", async () => {
  const bytes = gzipSync(tar([{ path: "w", body: randomBytes(4_000_000) }]), { level: 0 });
  const quota = new ArchiveError("space", "No space left on device");
  const onProgress = (expandedBytes: number) => {
    if (expandedBytes > 1_000_000) throw quota;
  };
  await assert.rejects(unpack(bytes, { onProgress }), (error: unknown) => error === quota);
});

test("an archive that fills the disk fails with the error of the disk and leaves nothing", async (context) => {
  const mount = join(root, "small");
  mkdirSync(mount);
  try {
    execFileSync("mount", ["-t", "tmpfs", "-o", "size=1m", "tmpfs", mount], { stdio: "pipe" });
  } catch {
    // Mounting needs root. Without it, only the quota test above covers a full disk.
    context.diagnostic("no right to mount a tmpfs here");
    return;
  }
  try {
    await using unpacker = new ArchiveUnpacker({
      threadCount: 1,
      aheadBytesMax: 2 ** 20,
      sharedBytesMin: 4096,
      contentDirectory: join(mount, "content"),
      limits: archiveLimits,
    });
    const bytes = gzipSync(tar([{ path: "w", body: randomBytes(3_000_000) }]), { level: 0 });
    const signal = AbortSignal.timeout(testTimeoutMs);
    const unpacking = unpacker.unpack(Readable.from([bytes]), join(mount, "tree"), { signal });
    await assert.rejects(unpacking, refused("space", /^No space left on device$/));
    assert.deepEqual(readdirSync(mount), []);
  } finally {
    execFileSync("umount", [mount]);
  }
});

test("an unpacking ends with the error of its source, or with the reason of its signal", async () => {
  await using unpacker = new ArchiveUnpacker({
    threadCount: 1,
    aheadBytesMax: 2 ** 20,
    sharedBytesMin: 4096,
    contentDirectory: null,
    limits: archiveLimits,
  });
  const bytes = gzipSync(tar([{ path: "w", body: randomBytes(100_000) }]), { level: 0 });
  const failing = Readable.from(
    (function* () {
      yield bytes.subarray(0, 5000);
      throw new Error("store gone");
    })(),
  );
  const destination = join(root, "left");
  await assert.rejects(
    unpacker.unpack(failing, destination, { signal: AbortSignal.timeout(testTimeoutMs) }),
    /store gone/,
  );
  const controller = new AbortController();
  const stalled = new Readable({ read() {} });
  stalled.push(bytes.subarray(0, 5000));
  const unpacking = unpacker.unpack(stalled, destination, { signal: controller.signal });
  const refused = assert.rejects(unpacking, /left/);
  // The unpacker has read all available bytes and waits for more.
  await eventually(() => stalled.readableLength === 0);
  controller.abort(new Error("left"));
  await refused;
  assert(!existsSync(destination));
  assert(stalled.destroyed);
});
