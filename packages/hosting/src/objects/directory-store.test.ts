import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { cp, mkdtemp, readFile, readdir, rename, rm, statfs, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable } from "node:stream";
import { buffer } from "node:stream/consumers";
import { test } from "node:test";
import * as fc from "fast-check";
import { eventually } from "@galatea/base/core/eventually-fixture.ts";
import { silentLogger, type Clock } from "@galatea/base";
import { BodyDigest, computeDigest } from "./checksum.ts";
import { combineChecksums } from "./cyclic-checksum.ts";
import { openDirectoryStore } from "./directory-store.ts";
import { ObjectIndex, compareKeys } from "./object-index.ts";
import { objectStoreContract } from "./object-store.contract.ts";
import type { BucketStore, ObjectHead } from "./object-store.ts";

const signal = new AbortController().signal;
const logger = silentLogger;

objectStoreContract("directory", openBucket);

async function openBucket() {
  const folder = await mkdtemp(join(tmpdir(), "galatea-store-"));
  const stores = [await openDirectoryStore({ folder, logger })];
  await stores[0]?.createBucket("bkt");
  return {
    store: stores[0] as BucketStore,
    async reopened() {
      const store = await openDirectoryStore({ folder, logger });
      stores.push(store);
      return store;
    },
    async [Symbol.asyncDispose]() {
      for (const store of stores) await store[Symbol.asyncDispose]();
      await rm(folder, { recursive: true });
    },
  };
}

/** Returns the names of all files except the snapshot, which is written in the background. */
async function filesOf(folder: string): Promise<string[]> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  return entries.flatMap((entry) => (entry.isFile() && !entry.name.startsWith("objects.snapshot") ? [entry.name] : []));
}

/** The content of the n-th write to a small key by the writer below. */
const smallText = (n: number) => `${n} `.repeat(n % 200);

/** Overwrites keys and one part of an upload in an endless loop, and prints each acknowledged version. */
const writer = `
import { Readable } from "node:stream";
import { openDirectoryStore } from ${JSON.stringify(new URL("./directory-store.ts", import.meta.url).href)};
import { silentLogger } from ${JSON.stringify(new URL("../../../base/src/core/index.ts", import.meta.url).href)};
const store = await openDirectoryStore({ folder: process.argv[1], logger: silentLogger });
const signal = new AbortController().signal;
const { uploadId } = await store.createUpload("bkt", "m", { checksumAlgorithm: null, checksumType: "COMPOSITE" });
for (let n = Number(process.argv[2]); ; n += 1) {
  const chunks = () => Readable.from(Array.from({ length: 20 }, () => Buffer.alloc(80_000, n % 251)));
  const small = (key) => store.put("bkt", key, Readable.from([Buffer.from((n + " ").repeat(n % 200))]), { signal });
  await Promise.all([small("small"), small("small-" + n), store.delete("bkt", "small-" + (n - 1)), store.put("bkt", "k", chunks(), { signal }), store.put("bkt", "key-" + n, chunks(), { signal }), store.putPart({ bucket: "bkt", key: "m", uploadId }, 1, chunks(), { signal })]);
  process.stdout.write(n + "\\n");
}`;

test("a put that began before its bucket was deleted and created again is not in the new bucket", async () => {
  await using opened = await openBucket();
  const { store } = opened;
  const recreated = Promise.withResolvers<void>();
  const body = Readable.from(
    (async function* () {
      yield Buffer.alloc(2 ** 21);
      await store.deleteBucket("bkt");
      await store.createBucket("bkt");
      recreated.resolve();
      yield Buffer.alloc(2 ** 16);
    })(),
  );
  await assert.rejects(store.put("bkt", "k", body, { signal }), { code: "NoSuchBucket" });
  // The put can be rejected as soon as its bucket is deleted.
  await recreated.promise;
  const page = await store.list("bkt", { prefix: "", delimiter: "", startAfter: "", keysMax: 10 });
  assert.deepEqual(page.objects, []);
});

test("an object without a file of its own is not linked", async () => {
  await using opened = await openBucket();
  const { store } = opened;
  const short = await store.put("bkt", "short", Readable.from([Buffer.from("short")]), { signal });
  assert.equal(await store.link(short, "bkt", "linked", { signal }), null);
});

test("kill -9 at any moment: visible objects are complete, acknowledged ones are there, temporary files are removed", async () => {
  const folder = await mkdtemp(join(tmpdir(), "galatea-kill-"));
  try {
    await (await openDirectoryStore({ folder, logger })).createBucket("bkt");
    let next = 1;
    for (const delayMs of [3, 11, 17, 26, 40]) {
      const args = ["--input-type=module", "-e", writer, folder, String(next)];
      const child = spawn(process.execPath, args, { stdio: ["ignore", "pipe", "inherit"] });
      let text = "";
      child.stdout.on("data", (chunk: Buffer) => (text += chunk.toString()));
      await Promise.race([once(child.stdout, "data"), once(child, "close")]);
      // The process must be killed at a random moment during the writes, so this delay waits for no event.
      await new Promise((resolve) => setTimeout(resolve, delayMs));
      child.kill("SIGKILL");
      await once(child, "close");
      const acknowledged = Number(text.trim().split("\n").at(-1));
      const store = await openDirectoryStore({ folder, logger });
      const { objects } = await store.list("bkt", { prefix: "", delimiter: "", startAfter: "", keysMax: 10_000 });
      const keys = new Set(objects.map((head) => head.key));
      for (let n = 1; n <= acknowledged; n += 1) assert.ok(keys.has(`key-${n}`), `key-${n} was acknowledged`);
      assert.ok(!keys.has(`small-${acknowledged - 1}`), "its deletion was acknowledged");
      const smalls = objects.filter(({ key }) => key.startsWith("small"));
      for (const head of [...smalls, ...objects.slice(0, 20)]) {
        const data = await buffer((await store.get("bkt", head.key)).body);
        assert.equal(`"${Buffer.from(computeDigest("md5", data), "base64").toString("hex")}"`, head.etag);
        if (head.key !== "small") continue;
        const n = Number.parseInt(data.toString(), 10);
        assert.ok(n === acknowledged || n === acknowledged + 1, `${n} of ${acknowledged}`);
        assert.equal(data.toString(), smallText(n));
      }
      const files = await filesOf(join(folder, "buckets", "bkt", "objects"));
      const expected = smalls.length + 2 * (objects.length - smalls.length);
      assert.equal(files.length, expected, "an entry for each object, a data file for each large one, nothing else");
      next = acknowledged + 1;
      await store[Symbol.asyncDispose]();
    }
  } finally {
    await rm(folder, { recursive: true });
  }
});

test("a full disk fails the write with its error, keeps the objects and leaves no file", async (context) => {
  if (process.getuid?.() !== 0) return context.skip("mounting a small tmpfs needs root");
  const folder = await mkdtemp(join(tmpdir(), "galatea-full-"));
  execFileSync("mount", ["-t", "tmpfs", "-o", "size=4m", "tmpfs", folder]);
  try {
    await using store = await openDirectoryStore({ folder, logger });
    await store.createBucket("bkt");
    await store.put("bkt", "small", Readable.from([Buffer.alloc(1000, 1)]), { signal });
    const before = await filesOf(folder);
    const small = (byteLength: number) => Readable.from([Buffer.alloc(byteLength, 2)]);
    const big = () => Readable.from(Array.from({ length: 100 }, () => Buffer.alloc(100_000)));
    await assert.rejects(store.put("bkt", "small", big(), { signal }), { code: "InsufficientStorage" });
    const { uploadId } = await store.createUpload("bkt", "m", { checksumAlgorithm: null, checksumType: "COMPOSITE" });
    const id = { bucket: "bkt", key: "m", uploadId };
    await assert.rejects(store.putPart(id, 1, big(), { signal }), { code: "InsufficientStorage" });
    await store.abortUpload(id);
    assert.deepEqual(await filesOf(folder), before);
    assert.equal((await store.head("bkt", "small")).byteLength, 1000);
    // The hashing threads close the files of failed writes a moment later. Until then, these files use disk space.
    await eventually(async () => {
      const { bavail, bsize } = await statfs(folder);
      return bavail * bsize > 3.5 * 2 ** 20;
    });
    await store.put("bkt", "after", Readable.from([Buffer.alloc(1000, 1)]), { signal });
    // Fills the disk with small objects: each write fails, or its object is kept. Then tests overwrites and changed headers; after a
    // deletion, writes succeed again.
    const kept: string[] = [];
    const filled = async () => {
      for (;;) {
        const key = `fill-${kept.length}`;
        await store.put("bkt", key, small(300_000), { signal });
        kept.push(key);
      }
    };
    await assert.rejects(filled(), { code: "InsufficientStorage" });
    assert.ok(kept.length > 5);
    const full = await filesOf(folder);
    await assert.rejects(store.put("bkt", "fill-0", small(900_000), { signal }), { code: "InsufficientStorage" });
    await assert.rejects(store.changeHeaders("bkt", "fill-0", { "x-amz-meta-a": "1" }), {
      code: "InsufficientStorage",
    });
    assert.deepEqual(await filesOf(folder), full);
    await store.delete("bkt", "fill-1");
    await store.put("bkt", "fill-1", small(1000), { signal });
    await using again = await openDirectoryStore({ folder, logger });
    for (const key of kept) {
      const { head, body } = await again.get("bkt", key);
      assert.equal((await buffer(body)).byteLength, key === "fill-1" ? 1000 : 300_000);
      assert.deepEqual(head, await store.head("bkt", key));
    }
  } finally {
    execFileSync("umount", ["-l", folder]);
    await rm(folder, { recursive: true });
  }
});

const partBytes = 5 * 2 ** 20;
const part = (seed: number, byteLength = partBytes) => Buffer.alloc(byteLength, `${seed}-`);

/** Uploads parts in the order of `steps`, and completes the upload with `chosen`. */
async function uploaded(
  { store, folder }: { store: BucketStore; folder: string },
  steps: readonly { number: number; seed: number; byteLength?: number; isCut?: boolean }[],
  chosen: readonly { number: number; seed: number; byteLength?: number }[],
): Promise<{ data: Buffer; head: ObjectHead; uploadFiles: number }> {
  const { uploadId } = await store.createUpload("bkt", "m", {
    checksumAlgorithm: "crc32",
    checksumType: "FULL_OBJECT",
  });
  const id = { bucket: "bkt", key: "m", uploadId };
  for (const { number, seed, byteLength, isCut } of steps) {
    const bytes = part(seed, byteLength);
    const expect = { algorithms: [], announced: () => ({}), byteLength: bytes.byteLength };
    const sent = isCut === true ? bytes.subarray(0, bytes.byteLength / 2) : bytes;
    const put = store.putPart(id, number, Readable.from([sent]), { signal, expect });
    if (isCut === true) await assert.rejects(put, { code: "IncompleteBody" });
    else await put;
  }
  const names = await readdir(join(folder, "buckets", "bkt", "uploads", uploadId));
  const parts = chosen.map(({ number, seed, byteLength }) => ({
    partNumber: number,
    etag: Buffer.from(computeDigest("md5", part(seed, byteLength)), "base64").toString("hex"),
    checksums: {},
  }));
  const head = await store.completeUpload(id, parts, { signal });
  const data = await buffer((await store.get("bkt", "m")).body);
  const expected = Buffer.concat(chosen.map(({ seed, byteLength }) => part(seed, byteLength)));
  assert.ok(data.equals(expected), `${data.byteLength} of ${expected.byteLength} bytes`);
  assert.equal(head.checksums["crc32"], computeDigest("crc32", expected));
  return { data, head, uploadFiles: names.filter((name) => !name.endsWith(".json")).length };
}

test("parts of equal size are written to one file that becomes the object; other parts are joined to the same bytes", async () => {
  const folder = await mkdtemp(join(tmpdir(), "galatea-joined-"));
  try {
    await using store = await openDirectoryStore({ folder, logger });
    await store.createBucket("bkt");
    const [one, two, last] = [
      { number: 1, seed: 1 },
      { number: 2, seed: 2 },
      { number: 3, seed: 3, byteLength: 100 },
    ];
    for (const [steps, chosen, files] of [
      [[one, two, last], [one, two, last], 1],
      [[two, last, one], [one, two, last], 1],
      // A part that failed and is sent again is written to the same position.
      [[one, { ...two, isCut: true }, two, last], [one, two, last], 1],
      [[one, two, { ...last, isCut: true }], [one, two], 1],
      // A new version of an uploaded part is written to a separate file.
      [[one, two, { number: 1, seed: 9 }, last], [{ number: 1, seed: 9 }, two, last], 2],
      // Parts of other sizes, gaps in the numbers, and parts that the completion does not list.
      [
        [one, { number: 2, seed: 2, byteLength: partBytes + 7 }, last],
        [one, { number: 2, seed: 2, byteLength: partBytes + 7 }, last],
        2,
      ],
      [[one, { number: 4, seed: 4 }], [one, { number: 4, seed: 4 }], 1],
      [[one, two, last], [one, two], 1],
      [[last, one, two], [one, two, last], 2],
    ] as const) {
      const { uploadFiles } = await uploaded({ store, folder }, steps, chosen);
      assert.equal(uploadFiles, files, JSON.stringify(steps));
    }
    assert.deepEqual(await readdir(join(folder, "buckets", "bkt", "uploads")), []);
    assert.equal((await filesOf(join(folder, "buckets", "bkt", "objects"))).length, 2);
  } finally {
    await rm(folder, { recursive: true });
  }
});

test("a part that arrives while its upload is completed does not change the object", async () => {
  const folder = await mkdtemp(join(tmpdir(), "galatea-late-"));
  try {
    await using store = await openDirectoryStore({ folder, logger });
    await store.createBucket("bkt");
    const { uploadId } = await store.createUpload("bkt", "m", { checksumAlgorithm: null, checksumType: "COMPOSITE" });
    const id = { bucket: "bkt", key: "m", uploadId };
    const put = (number: number) => {
      const expect = { algorithms: [], announced: () => ({}), byteLength: partBytes };
      return store.putPart(id, number, Readable.from([part(number)]), { signal, expect });
    };
    const { etag } = await put(1);
    const [created] = await Promise.allSettled([
      store.completeUpload(id, [{ partNumber: 1, etag, checksums: {} }], { signal }),
      put(2),
      put(1),
    ]);
    assert.equal(created.status, "fulfilled");
    assert.ok((await buffer((await store.get("bkt", "m")).body)).equals(part(1)));
  } finally {
    await rm(folder, { recursive: true });
  }
});

test("a part of a previous run that was changed on disk is rejected when its upload is completed", async () => {
  const folder = await mkdtemp(join(tmpdir(), "galatea-power-"));
  try {
    const first = await openDirectoryStore({ folder, logger });
    await first.createBucket("bkt");
    const { uploadId } = await first.createUpload("bkt", "m", { checksumAlgorithm: null, checksumType: "COMPOSITE" });
    const id = { bucket: "bkt", key: "m", uploadId };
    const expect = { algorithms: [], announced: () => ({}), byteLength: partBytes };
    const { etag } = await first.putPart(id, 1, Readable.from([part(1)]), { signal, expect });
    await first[Symbol.asyncDispose]();
    const path = join(folder, "buckets", "bkt", "uploads", uploadId, "joined");
    const bytes = await readFile(path);
    await writeFile(path, Buffer.concat([bytes.subarray(0, 1000), Buffer.alloc(bytes.length - 1000)]));
    await using second = await openDirectoryStore({ folder, logger });
    const completed = () => second.completeUpload(id, [{ partNumber: 1, etag, checksums: {} }], { signal });
    await assert.rejects(completed(), { code: "InvalidPart" });
    await second.putPart(id, 1, Readable.from([part(1)]), { signal, expect });
    await completed();
    assert.ok((await buffer((await second.get("bkt", "m")).body)).equals(part(1)));
  } finally {
    await rm(folder, { recursive: true });
  }
});

test("an upload whose object was created just before a kill is removed by the next start, and completing it again returns the same", async () => {
  const folder = await mkdtemp(join(tmpdir(), "galatea-made-"));
  try {
    const first = await openDirectoryStore({ folder, logger });
    await first.createBucket("bkt");
    const { uploadId } = await first.createUpload("bkt", "m", { checksumAlgorithm: null, checksumType: "COMPOSITE" });
    const id = { bucket: "bkt", key: "m", uploadId };
    const { etag } = await first.putPart(id, 1, Readable.from(["part"]), { signal });
    const uploads = join(folder, "buckets", "bkt", "uploads");
    // The state after a kill between the commit of the object and the removal of its upload.
    await cp(join(uploads, uploadId), join(folder, "before"), { recursive: true });
    const complete = (store: BucketStore) =>
      store.completeUpload(id, [{ partNumber: 1, etag, checksums: {} }], { signal });
    const generated = await complete(first);
    await first[Symbol.asyncDispose]();
    await rename(join(folder, "before"), join(uploads, uploadId));
    await using second = await openDirectoryStore({ folder, logger });
    assert.deepEqual((await second.listUploads("bkt", { prefix: "", after: null, countMax: 10 })).items, []);
    assert.deepEqual(await readdir(uploads), []);
    assert.deepEqual(await complete(second), generated);
  } finally {
    await rm(folder, { recursive: true });
  }
});

test("an upload that is not completed is removed while the store is open", async () => {
  const folder = await mkdtemp(join(tmpdir(), "galatea-expiry-"));
  try {
    let nowMs = 1_000_000;
    const pending: (() => void)[] = [];
    const clock: Clock = {
      epochMs: () => nowMs,
      monotonicNs: () => nowMs * 1e6,
      timer(_delayMs, fire) {
        pending.push(fire);
        return { [Symbol.dispose]() {} };
      },
    };
    await using store = await openDirectoryStore({ folder, logger, clock, limits: { uploadAgeMsMax: 1000 } });
    await store.createBucket("bkt");
    const plain = { checksumAlgorithm: null, checksumType: "COMPOSITE" } as const;
    const old = await store.createUpload("bkt", "old", plain);
    await store.putPart(old, 1, Readable.from([Buffer.alloc(1000)]), { signal });
    nowMs += 1001;
    const young = await store.createUpload("bkt", "young", plain);
    pending.shift()?.();
    const uploads = join(folder, "buckets", "bkt", "uploads");
    while ((await readdir(uploads)).length > 1) await new Promise(setImmediate);
    assert.deepEqual((await store.listUploads("bkt", { prefix: "", after: null, countMax: 10 })).items, [young]);
    await assert.rejects(store.headUpload(old), { code: "NoSuchUpload" });
    assert.equal(pending.length, 1, "the next look is due");
  } finally {
    await rm(folder, { recursive: true });
  }
});

test("hashing a large body leaves the event loop free", async () => {
  const folder = await mkdtemp(join(tmpdir(), "galatea-loop-"));
  const algorithms = ["crc64nvme", "sha1"] as const;
  // CPU time of this thread. Unlike wall time, it does not depend on other load on the machine.
  const cpuMs = (since: NodeJS.CpuUsage) => {
    const { user, system } = process.threadCpuUsage(since);
    return (user + system) / 1000;
  };
  try {
    await using store = await openDirectoryStore({ folder, logger });
    await store.createBucket("bkt");
    const chunk = randomBytes(2 ** 16);
    const before = process.threadCpuUsage();
    const here = new BodyDigest([...algorithms, "md5"]);
    for (let count = 0; count < 1600; count++) here.update(chunk);
    here.digest();
    const hashingMs = cpuMs(before);
    const began = process.threadCpuUsage();
    const body = Readable.from(Array.from({ length: 1600 }, () => chunk));
    const head = await store.put("bkt", "big", body, { signal, expect: { algorithms, announced: () => ({}) } });
    const puttingMs = cpuMs(began);
    assert.equal(head.byteLength, 1600 * 2 ** 16);
    assert.ok(puttingMs < hashingMs / 2, `the put took ${puttingMs} ms of this thread, hashing alone ${hashingMs} ms`);
  } finally {
    await rm(folder, { recursive: true });
  }
});

test("checksums have their published check values, however the data are split", () => {
  const check = Buffer.from("123456789");
  assert.equal(Buffer.from(computeDigest("crc32", check), "base64").toString("hex"), "cbf43926");
  assert.equal(Buffer.from(computeDigest("crc32c", check), "base64").toString("hex"), "e3069283");
  assert.equal(Buffer.from(computeDigest("crc64nvme", check), "base64").toString("hex"), "ae8b14860a799888");
  const names = ["crc32", "crc32c", "crc64nvme", "md5"] as const;
  fc.assert(
    fc.property(fc.array(fc.uint8Array({ maxLength: 40 })), (buffers) => {
      const digest = new BodyDigest(names);
      for (const each of buffers) digest.update(each);
      const complete = Object.fromEntries(names.map((name) => [name, computeDigest(name, Buffer.concat(buffers))]));
      assert.deepEqual(digest.digest(), complete);
    }),
  );
});

test("the combined CRC of consecutive chunks is that of their bytes", () => {
  for (const algorithm of ["crc32", "crc32c", "crc64nvme"] as const) {
    fc.assert(
      fc.property(fc.array(fc.uint8Array({ maxLength: 300 })), (buffers) => {
        const chunks = buffers.map((each) => ({
          byteLength: each.byteLength,
          checksum: computeDigest(algorithm, Buffer.from(each)),
        }));
        assert.equal(combineChecksums(algorithm, chunks), computeDigest(algorithm, Buffer.concat(buffers)));
      }),
    );
    const large = Buffer.alloc(6 * 2 ** 20, 9);
    const half = {
      byteLength: large.length / 2,
      checksum: computeDigest(algorithm, large.subarray(0, large.length / 2)),
    };
    assert.equal(combineChecksums(algorithm, [half, half]), computeDigest(algorithm, large));
  }
});

test("a page of a listing ends after many hidden keys, and the next page continues there", () => {
  const index = new ObjectIndex<{ head: ObjectHead }>();
  const hidden = Array.from({ length: 2500 }, (_, at) => `a/${String(at).padStart(4, "0")}`);
  for (const key of ["a/", ...hidden, "a/z", "b/hidden"]) index.set({ head: { key } as ObjectHead });
  const pages = [];
  for (let startAfter: string | null = ""; startAfter !== null;) {
    const isListed = (key: string) => key === "a/z";
    const page = index.list({ prefix: "", delimiter: "/", startAfter, keysMax: 10, isListed });
    pages.push(page.commonPrefixes);
    startAfter = page.nextStartAfter;
  }
  assert.deepEqual(pages, [[], [], ["a/"]]);
});

test("the index lists the same pages as a filter over sorted keys", () => {
  const key = fc.string({ unit: fc.constantFrom("a", "b", "/", "\uffee", "\u{1f600}"), minLength: 1, maxLength: 6 });
  const settings = fc.record({
    prefix: fc.constantFrom("", "a", "a/"),
    delimiter: fc.constantFrom("", "/"),
    keysMax: fc.integer({ min: 1, max: 4 }),
    shown: fc.constantFrom("a", "b", "/", ""),
  });
  fc.assert(
    fc.property(
      fc.uniqueArray(key),
      fc.array(key),
      settings,
      (keys, removed, { prefix, delimiter, keysMax, shown }) => {
        const index = new ObjectIndex<{ head: ObjectHead }>();
        for (const name of [...removed, ...keys]) index.set({ head: { key: name } as ObjectHead });
        for (const name of removed) if (!keys.includes(name)) index.delete(name);
        const expected = new Set<string>();
        for (const name of keys.toSorted(compareKeys)) {
          if (!name.startsWith(prefix) || !name.includes(shown)) continue;
          const at = delimiter === "" ? -1 : name.indexOf(delimiter, prefix.length);
          expected.add(at === -1 ? name : name.slice(0, at + 1));
        }
        const listed: string[] = [];
        for (let startAfter: string | null = ""; startAfter !== null;) {
          const isListed = (name: string) => name.includes(shown);
          const page = index.list({ prefix, delimiter, startAfter, keysMax, isListed });
          assert.ok(page.objects.length + page.commonPrefixes.length <= keysMax);
          listed.push(...page.objects.map((head) => head.key), ...page.commonPrefixes);
          startAfter = page.nextStartAfter;
        }
        assert.deepEqual(listed.toSorted(compareKeys), [...expected].toSorted(compareKeys));
      },
    ),
  );
});
