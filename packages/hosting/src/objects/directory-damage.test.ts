import assert from "node:assert/strict";
import { once } from "node:events";
import { cp, mkdir, mkdtemp, readFile, readdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable } from "node:stream";
import { buffer } from "node:stream/consumers";
import { test } from "node:test";
import * as fc from "fast-check";
import { createLogger, silentLogger } from "@galatea/base";
import { openDirectoryStore } from "./directory-store.ts";
import type { BucketStore } from "./object-store.ts";

const signal = new AbortController().signal;
const logger = silentLogger;

async function filesOf(folder: string): Promise<string[]> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  return entries.filter((entry) => entry.isFile()).map((entry) => entry.name);
}

/** Removes the snapshot, so that the next start reads the entries' own files. */
const forgetSnapshot = (folder: string) => rm(join(folder, "buckets", "bkt", "objects.snapshot"), { force: true });

const partBytes = 5 * 2 ** 20;
const part = (seed: number, byteLength = partBytes) => Buffer.alloc(byteLength, `${seed}-`);

test("a damaged entry is renamed and logged; the other objects of the bucket are there", async () => {
  const folder = await mkdtemp(join(tmpdir(), "galatea-damaged-"));
  try {
    const first = await openDirectoryStore({ folder, logger });
    await first.createBucket("bkt");
    await first.put("bkt", "good", Readable.from([Buffer.from("x")]), { signal });
    await first.put("bkt", "bad", Readable.from([Buffer.from("y")]), { signal });
    await first[Symbol.asyncDispose]();
    await forgetSnapshot(folder);
    const objects = join(folder, "buckets", "bkt", "objects");
    const shard = (await readdir(objects, { recursive: true })).filter((name) => name.endsWith(".json"));
    await writeFile(join(objects, shard[0] ?? ""), "{torn");
    const logged: string[] = [];
    const store = await openDirectoryStore({ folder, logger: { ...logger, error: (message) => logged.push(message) } });
    assert.equal(
      (await store.list("bkt", { prefix: "", delimiter: "", startAfter: "", keysMax: 10 })).objects.length,
      1,
    );
    assert.equal(logged.length, 1);
  } finally {
    await rm(folder, { recursive: true });
  }
});

/** Creates a store with three objects and an unfinished upload of two parts, closes it, and removes the snapshot. */
async function makeStore(folder: string): Promise<void> {
  const store = await openDirectoryStore({ folder, logger });
  await store.createBucket("bkt");
  for (const key of ["a", "b/ü", "c"]) await store.put("bkt", key, Readable.from([Buffer.from(key)]), { signal });
  const { uploadId } = await store.createUpload("bkt", "m", { checksumAlgorithm: "crc32", checksumType: "COMPOSITE" });
  for (const number of [1, 2]) {
    await store.putPart({ bucket: "bkt", key: "m", uploadId }, number, Readable.from([Buffer.from("p")]), { signal });
  }
  await store[Symbol.asyncDispose]();
  await forgetSnapshot(folder);
}

/**
 * Returns the length of the description at the start of a file: one line, or the two lines of an entry. The final line feed is excluded. Bytes of an object
 * may follow.
 */
function descriptionLength(bytes: Buffer): number {
  const first = bytes.indexOf("\n");
  const isEntry = first === "00000000 00000000".length;
  return isEntry ? bytes.indexOf("\n", first + 1) : first;
}

async function openDamaged(folder: string) {
  const logged: string[] = [];
  const log = createLogger((_, message, fields) => logged.push(`${message} ${JSON.stringify(fields)}`));
  const store = await openDirectoryStore({ folder, logger: log });
  const { objects } = await store.list("bkt", { prefix: "", delimiter: "", startAfter: "", keysMax: 10 });
  const keys = objects.map(({ key }) => key);
  const uploads = await store.listUploads("bkt", { prefix: "", after: null, countMax: 10 });
  const pages = await Promise.all(
    uploads.items.map((upload) => store.listParts(upload, { afterNumber: 0, countMax: 10 })),
  );
  await store[Symbol.asyncDispose]();
  return { logged, keys, partCount: pages.flatMap(({ items }) => items).length };
}

test("any flipped bit of a description is repaired and logged; the object, part or bucket is there", async () => {
  const folder = await mkdtemp(join(tmpdir(), "galatea-flip-"));
  try {
    await makeStore(join(folder, "made"));
    const names = (await readdir(join(folder, "made"), { recursive: true })).filter((name) => name.endsWith(".json"));
    assert.equal(names.length, 7);
    const objectNames = names.filter((name) => /objects.*\.\w{11}\.json$/.test(name));
    const firstLineFeedBit = "00000000 00000000".length * 8;
    await fc.assert(
      fc.asyncProperty(fc.constantFrom(...names), fc.nat(), async (name, chosen) => {
        const copy = join(folder, "copy");
        await cp(join(folder, "made"), copy, { recursive: true });
        const bytes = await readFile(join(copy, name));
        const bit = chosen % (descriptionLength(bytes) * 8);
        bytes[bit >>> 3]! ^= 1 << (bit & 7);
        await writeFile(join(copy, name), bytes);
        const { logged, keys, partCount } = await openDamaged(copy);
        assert.deepEqual({ keys, partCount }, { keys: ["a", "b/ü", "c"], partCount: 2 }, logged.join("\n"));
        assert.equal(logged.length, 1);
        assert.deepEqual((await openDamaged(copy)).logged, [], "it was repaired");
        await rm(copy, { recursive: true });
      }),
      { numRuns: 60, examples: [[objectNames[0]!, firstLineFeedBit]] },
    );
  } finally {
    await rm(folder, { recursive: true });
  }
});

test("empty and unreadable descriptions, and unknown files and folders, are renamed; everything else is served", async () => {
  const folder = await mkdtemp(join(tmpdir(), "galatea-stray-"));
  try {
    await makeStore(join(folder, "made"));
    const entries = await readdir(join(folder, "made"), { recursive: true, withFileTypes: true });
    const files = entries.filter((each) => each.isFile() && each.name.endsWith(".json"));
    const folders = entries.filter((each) => each.isDirectory() && each.name !== "tmp");
    const damages = [
      ...files.flatMap((file) =>
        ["", "garbage", "{}", "null"].map((text) => ({ path: join(file.parentPath, file.name), text })),
      ),
      ...folders.map((each) => ({ path: join(each.parentPath, each.name, "stray.txt"), text: "stray" })),
      ...folders.map((each) => ({ path: join(each.parentPath, each.name, "stray", "x"), text: "stray" })),
    ];
    for (const { path, text } of damages) {
      const copy = join(folder, "copy");
      await cp(join(folder, "made"), copy, { recursive: true });
      const damaged = path.replace(join(folder, "made"), copy);
      await mkdir(join(damaged, ".."), { recursive: true });
      await writeFile(damaged, text);
      const before = (await filesOf(copy)).length;
      const { logged, keys, partCount } = await openDamaged(copy);
      const what = `${path} ${text}: ${logged.join("; ")}`;
      assert.ok(keys.length >= 2 && (keys.length === 3 || logged.length > 0), what);
      assert.ok(partCount === 2 || logged.length > 0, what);
      // In a folder of uploads, files that no part refers to are removed. All other files must be kept.
      if (!path.includes("/uploads/"))
        assert.ok((await filesOf(copy)).length >= before, `${what}: something was deleted`);
      assert.deepEqual((await openDamaged(copy)).logged, [], `${what}: logged twice`);
      await rm(copy, { recursive: true });
    }
  } finally {
    await rm(folder, { recursive: true });
  }
});

test("a bucket's folder without a description is renamed; the other buckets are there", async () => {
  const folder = await mkdtemp(join(tmpdir(), "galatea-stray-"));
  try {
    await (await openDirectoryStore({ folder, logger })).createBucket("bkt");
    await mkdir(join(folder, "buckets", "stray", "objects"), { recursive: true });
    await using store = await openDirectoryStore({ folder, logger });
    assert.deepEqual(
      (await store.buckets()).map((head) => head.bucket),
      ["bkt"],
    );
    await store.createBucket("stray");
    assert.equal(
      (await readdir(join(folder, "buckets"))).filter((name) => name.startsWith("stray.damaged-")).length,
      1,
    );
  } finally {
    await rm(folder, { recursive: true });
  }
});

/** Runs a task while a file is damaged, and restores the file. */
async function withDamage(path: string, damage: (bytes: Buffer) => Buffer, task: () => Promise<void>): Promise<void> {
  const bytes = await readFile(path);
  await writeFile(path, damage(Buffer.from(bytes)));
  try {
    await task();
  } finally {
    await writeFile(path, bytes);
  }
}

test("an object with changed or missing bytes is never read completely: the reader gets an error, and the log has it", async () => {
  const folder = await mkdtemp(join(tmpdir(), "galatea-bytes-"));
  try {
    const logged: string[] = [];
    const log = createLogger((_, message, fields) => logged.push(`${message} ${JSON.stringify(fields)}`));
    await using store = await openDirectoryStore({ folder, logger: log });
    await store.createBucket("bkt");
    const objects = join(folder, "buckets", "bkt", "objects");
    const sizes = [1, 1000, 2 ** 18, 2 ** 20, 2 ** 20 + 1, 3 * 2 ** 20 + 5];
    const puts = sizes.map((byteLength) => async (key: string) => {
      await store.put("bkt", key, Readable.from([Buffer.alloc(byteLength, 5)]), { signal });
      return byteLength;
    });
    const multipart = async (key: string, isSameSize: boolean) => {
      const { uploadId } = await store.createUpload("bkt", key, { checksumAlgorithm: null, checksumType: "COMPOSITE" });
      const upload = { bucket: "bkt", key, uploadId };
      const parts = [];
      for (const [index, byteLength] of [partBytes, isSameSize ? 77 : partBytes + 1].entries()) {
        const expect = { algorithms: [], announced: () => ({}), byteLength };
        const body = Readable.from([part(index, byteLength)]);
        parts.push(await store.putPart(upload, index + 1, body, { signal, expect }));
      }
      return (await store.completeUpload(upload, parts, { signal })).byteLength;
    };
    const makes = [...puts, (key: string) => multipart(key, true), (key: string) => multipart(key, false)];
    for (const make of makes) {
      const byteLength = await make("k");
      const complete = await buffer((await store.get("bkt", "k")).body);
      assert.equal(complete.byteLength, byteLength);
      const names = await readdir(objects, { recursive: true });
      const data =
        names.find((name) => /\.[\w-]{12}$/.test(name)) ?? names.find((name) => name.endsWith(".json")) ?? "";
      const flips = [0, byteLength - 1, Math.floor(byteLength / 2)].map((back) => (bytes: Buffer) => {
        bytes[bytes.length - 1 - back]! ^= 4;
        return bytes;
      });
      for (const damage of [...flips, (bytes: Buffer) => bytes.subarray(0, -1)]) {
        logged.length = 0;
        await withDamage(join(objects, data), damage, async () => {
          const { body } = await store.get("bkt", "k");
          let readBytes = 0;
          body.on("data", (chunk: Buffer) => (readBytes += chunk.byteLength));
          await assert.rejects(once(body, "end"), { code: "InternalError" });
          assert.ok(readBytes < byteLength, `${readBytes} of ${byteLength}`);
          assert.equal(logged.length, 1);
        });
      }
      await withDamage(
        join(objects, data),
        (bytes) => bytes.subarray(0, -1),
        async () => {
          const { body } = await store.get("bkt", "k", { start: Math.min(1, byteLength - 1), end: byteLength });
          await assert.rejects(buffer(body), { code: "InternalError" });
        },
      );
      assert.deepEqual(await buffer((await store.get("bkt", "k")).body), complete);
      await store.delete("bkt", "k");
    }
  } finally {
    await rm(folder, { recursive: true });
  }
});

test("a power failure during an overwrite leaves the previous version, unless the new one is complete on the disk", async () => {
  const folder = await mkdtemp(join(tmpdir(), "galatea-torn-"));
  try {
    const opened = async (task: (store: BucketStore) => Promise<unknown>) => {
      const logged: string[] = [];
      const store = await openDirectoryStore({
        folder,
        logger: { ...logger, error: (message) => logged.push(message) },
      });
      await task(store);
      await store[Symbol.asyncDispose]();
      return logged;
    };
    const objects = join(folder, "buckets", "bkt", "objects");
    const entryPath = async () =>
      join(objects, (await readdir(objects, { recursive: true })).find((name) => name.endsWith(".json")) ?? "");
    const put = (text: string) => (store: BucketStore) =>
      store.put("bkt", "k", Readable.from([Buffer.from(text)]), { signal });
    await opened(async (store) => {
      await store.createBucket("bkt");
      await put("before")(store);
    });
    const before = { path: await entryPath(), bytes: await readFile(await entryPath()) };
    await opened(put("after!"));
    const after = { path: await entryPath(), bytes: await readFile(await entryPath()) };
    assert.notEqual(before.path, after.path);
    const cuts = [0, 1, 17, 18, 100, after.bytes.length - 7, after.bytes.length - 1].map((at) =>
      after.bytes.subarray(0, at),
    );
    const zeros = [0, 18, after.bytes.length - 6, after.bytes.length - 1].map((at) =>
      Buffer.from(after.bytes).fill(0, at),
    );
    const read = async (store: BucketStore) => (await buffer((await store.get("bkt", "k")).body)).toString();
    for (const torn of [...cuts, ...zeros]) {
      await writeFile(before.path, before.bytes);
      await writeFile(after.path, torn);
      const logged = await opened(async (store) => assert.equal(await read(store), "before"));
      assert.deepEqual(logged, ["an object's entry is damaged and is set aside"]);
      // A new write gets the highest version, even if files were quarantined.
      assert.deepEqual(await opened(put("next")), []);
      assert.deepEqual(await opened(async (store) => assert.equal(await read(store), "next")), []);
      await rm(await entryPath());
    }
    await writeFile(before.path, before.bytes);
    await writeFile(after.path, after.bytes);
    await writeFile(`${after.path}.tmp`, "what was being written");
    assert.deepEqual(await opened(async (store) => assert.equal(await read(store), "after!")), []);
    const left = (await filesOf(objects)).filter((name) => !name.includes(".damaged-"));
    assert.deepEqual(left, [after.path.split("/").at(-1)]);
  } finally {
    await rm(folder, { recursive: true });
  }
});
