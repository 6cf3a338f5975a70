import assert from "node:assert/strict";
import { createHash, randomBytes } from "node:crypto";
import { Readable } from "node:stream";
import { buffer } from "node:stream/consumers";
import { test } from "node:test";
import { computeDigest } from "./checksum.ts";
import type { BodyExpectation, BucketStore, ListUploadsOptions, UploadOptions } from "./object-store.ts";

const signal = new AbortController().signal;
const from = (data: Buffer | string) => Readable.from([Buffer.from(data)]);
const code = (expected: string) => (error: unknown) => (error as { code?: string }).code === expected;
const plain: UploadOptions = { checksumAlgorithm: null, checksumType: "COMPOSITE" };
const md5 = (data: Buffer) => createHash("md5").update(data).digest();

async function bytesOf(store: BucketStore, key: string, range?: { start: number; end: number }): Promise<Buffer> {
  return buffer((await store.get("bkt", key, range)).body);
}

async function keysOf(store: BucketStore, prefix = ""): Promise<string[]> {
  const page = await store.list("bkt", { prefix, delimiter: "", startAfter: "", keysMax: 1000 });
  return page.objects.map((head) => head.key);
}

/** Known deviations of other S3 services. The contract tolerates the deviations that the caller names. */
export type AllowedDifference =
  /** Keys are file paths. Components that are empty, `.`, `..` or over 255 bytes may fail, as may `a` if `a/b` exists. */
  | "keys are file paths"
  /** Concurrent deletes of one object by its ETag may all succeed. */
  | "concurrent deletes succeed"
  /** Aborting an upload that does not exist succeeds. */
  | "unknown uploads abort"
  /** An upload cannot be completed a second time. */
  | "uploads complete once"
  /** Uploads are listed by start time instead of by key. */
  | "uploads listed by start"
  /** A listing of uploads can start after a key, but not after an upload id. */
  | "upload id markers fail"
  /** Writes to a bucket that is deleted at the same time may fail with a 5xx. */
  | "deleted buckets fail writes";

/**
 * Tests that every BucketStore must pass. `open` returns an empty store with one bucket, `bkt`. `reopened` returns the
 * same store after a restart.
 */
export function objectStoreContract(
  name: string,
  open: () => Promise<{ store: BucketStore; reopened(): Promise<BucketStore> } & AsyncDisposable>,
  allowed: ReadonlySet<AllowedDifference> = new Set(),
): void {
  test(`${name}: an object comes back as it was put, whole and in ranges, also after a restart`, async () => {
    await using opened = await open();
    for (const byteLength of [0, 1, 1000, 3 * 2 ** 20 + 7]) {
      const data = randomBytes(byteLength);
      const options = { contentType: "text/csv", headers: { "x-amz-meta-a": "b" }, signal };
      const head = await opened.store.put("bkt", "k", from(data), options);
      assert.equal(head.etag, `"${md5(data).toString("hex")}"`);
      assert.deepEqual(await bytesOf(opened.store, "k"), data);
      assert.deepEqual(await bytesOf(opened.store, "k", { start: 0, end: 0 }), Buffer.alloc(0));
      if (byteLength > 10)
        assert.deepEqual(await bytesOf(opened.store, "k", { start: 3, end: 9 }), data.subarray(3, 9));
      const again = await opened.reopened();
      assert.deepEqual(await again.head("bkt", "k"), head);
      assert.deepEqual(await bytesOf(again, "k"), data);
      assert.deepEqual(head.headers, { "x-amz-meta-a": "b" });
    }
  });

  test(`${name}: any key is its own object, in the order of its UTF-8 bytes`, async () => {
    await using opened = await open();
    const noPaths = ["a", "a/", "../../etc/passwd", "a//b", ".", "x".repeat(1024), "nul\u0000"];
    const keys = ["a/b", "A", "e\u0301", "\u00e9", "\uffee", "\u{1f600}"];
    if (!allowed.has("keys are file paths")) keys.push(...noPaths);
    for (const key of keys) await opened.store.put("bkt", key, from(key), { signal });
    const sorted = keys.toSorted((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)));
    assert.deepEqual(await keysOf(opened.store), sorted);
    const again = await opened.reopened();
    assert.deepEqual(await keysOf(again), sorted);
    for (const key of keys) assert.equal((await bytesOf(again, key)).toString(), key);
    await assert.rejects(again.put("bkt", "y".repeat(1025), from(""), { signal }), code("KeyTooLongError"));
  });

  test(`${name}: a delimiter groups keys, and pages list each key once`, async () => {
    await using opened = await open();
    const keys = ["a/1", "a/2", "b", "c/1/x", "c/2", "d"];
    for (const key of keys) await opened.store.put("bkt", key, from(""), { signal });
    const seen: string[] = [];
    for (let startAfter: string | null = ""; startAfter !== null;) {
      const page = await opened.store.list("bkt", { prefix: "", delimiter: "/", startAfter, keysMax: 2 });
      seen.push(...[...page.commonPrefixes, ...page.objects.map((head) => head.key)].sort());
      startAfter = page.nextStartAfter;
    }
    assert.deepEqual(seen, ["a/", "b", "c/", "d"]);
    const inner = await opened.store.list("bkt", { prefix: "c/", delimiter: "/", startAfter: "", keysMax: 10 });
    assert.deepEqual([inner.commonPrefixes, inner.objects.map((head) => head.key)], [["c/1/"], ["c/2"]]);
  });

  test(`${name}: a body that differs from what was announced leaves the previous object`, async () => {
    await using opened = await open();
    await opened.store.put("bkt", "k", from("before"), { signal });
    for (const data of [Buffer.from("after"), randomBytes(2 ** 21)]) {
      const put = (expect: BodyExpectation, body = from(data)) =>
        opened.store.put("bkt", "k", body, { signal, expect });
      for (const name of ["crc32", "crc32c", "crc64nvme", "sha1", "sha256"] as const) {
        await assert.rejects(put({ algorithms: [name], announced: () => ({ [name]: "AAAA" }) }), code("BadDigest"));
      }
      await assert.rejects(put({ algorithms: [], announced: () => ({ md5: "AAAA" }) }), code("BadDigest"));
      await assert.rejects(put({ algorithms: [], announced: () => ({}), byteLength: 3 }), code("IncompleteBody"));
      const broken = Readable.from(
        (function* () {
          yield data;
          throw new Error("client gone");
        })(),
      );
      await assert.rejects(put({ algorithms: [], announced: () => ({}) }, broken), /client gone/);
      assert.equal((await bytesOf(opened.store, "k")).toString(), "before");
    }
    const aborter = new AbortController();
    const endless = new Readable({ read: () => undefined });
    const put = opened.store.put("bkt", "k", endless, { signal: aborter.signal });
    aborter.abort(new Error("gone"));
    await assert.rejects(put, /gone/);
  });

  test(`${name}: chunks are not read after they are released, and the object has their bytes`, async () => {
    await using opened = await open();
    const chunks = Array.from({ length: 60 }, () => randomBytes(70_000));
    const data = Buffer.concat(chunks);
    let releasedBytes = 0;
    const released = (chunk: Buffer) => {
      releasedBytes += chunk.byteLength;
      chunk.fill(0);
    };
    const copies = () => Readable.from(chunks.map((chunk) => Buffer.from(chunk)));
    const head = await opened.store.put("bkt", "k", copies(), { signal, released });
    assert.equal(head.etag, `"${md5(data).toString("hex")}"`);
    assert.deepEqual(await bytesOf(opened.store, "k"), data);
    const { uploadId } = await opened.store.createUpload("bkt", "m", plain);
    const id = { bucket: "bkt", key: "m", uploadId };
    const part = await opened.store.putPart(id, 1, copies(), { signal, released });
    await opened.store.completeUpload(id, [part], { signal });
    assert.deepEqual(await bytesOf(opened.store, "m"), data);
    assert.equal(releasedBytes, 2 * data.byteLength);
  });

  test(`${name}: a linked object outlives its source, and no other object changes with it`, async () => {
    await using opened = await open();
    const { store } = opened;
    const data = randomBytes(2 ** 21);
    const source = await store.put("bkt", "source", from(data), { signal });
    const linked = await store.link(source, "bkt", "linked", { signal, headers: { "x-amz-meta-a": "b" } });
    assert.deepEqual(
      [linked?.etag, linked?.byteLength, linked?.headers],
      [source.etag, 2 ** 21, { "x-amz-meta-a": "b" }],
    );
    await store.put("bkt", "source", from(Buffer.from("other")), { signal });
    assert.deepEqual(await bytesOf(store, "linked"), data);
    await store.delete("bkt", "source");
    assert.deepEqual(await bytesOf(store, "linked"), data);
    assert.equal(await store.link(source, "bkt", "again", { signal }), null, "the source was deleted");
    const condition = { ifNoneMatch: "*" };
    const large = await store.put("bkt", "large", from(data), { signal });
    const unmade = await store.link(large, "bkt", "linked", { signal, condition }).catch((error: unknown) => error);
    assert.ok(unmade === null || code("PreconditionFailed")(unmade), String(unmade));
    assert.deepEqual(await bytesOf(store, "linked"), data);
  });

  test(`${name}: requested checksums are stored`, async () => {
    await using opened = await open();
    const data = randomBytes(2 ** 21 + 3);
    for (const name of ["crc32", "crc32c", "crc64nvme", "sha1", "sha256"] as const) {
      const announced = { [name]: computeDigest(name, data) };
      const expect = { algorithms: [name], announced: () => announced };
      assert.deepEqual((await opened.store.put("bkt", "k", from(data), { signal, expect })).checksums, announced);
      assert.deepEqual((await opened.store.head("bkt", "k")).checksums, announced);
    }
  });

  test(`${name}: of concurrent writes one is the object, and conditions are checked in the step that writes`, async () => {
    await using opened = await open();
    const { store } = opened;
    const bodies = Array.from({ length: 12 }, (_, n) => Buffer.alloc(300_000, n));
    await Promise.all(bodies.map((data) => store.put("bkt", "k", from(data), { signal })));
    const kept = await bytesOf(store, "k");
    assert.ok(bodies.some((data) => data.equals(kept)));
    assert.deepEqual(await bytesOf(await opened.reopened(), "k"), kept);
    const once = bodies.map((data) => store.put("bkt", "new", from(data), { signal, condition: { ifNoneMatch: "*" } }));
    const outcomes = await Promise.allSettled(once);
    assert.equal(outcomes.filter((outcome) => outcome.status === "fulfilled").length, 1);
    const stale = store.put("bkt", "k", from("x"), { signal, condition: { ifMatch: '"0"' } });
    await assert.rejects(stale, code("PreconditionFailed"));
  });

  test(`${name}: an object is deleted only while its conditions hold`, async () => {
    await using opened = await open();
    const { store } = opened;
    const head = await store.put("bkt", "k", from("hello"), { signal });
    const { etag: ifMatch, lastModifiedMs, byteLength } = head;
    const failing = [
      { ifMatch: '"0"' },
      { lastModifiedMs: lastModifiedMs - 2000 },
      { byteLength: byteLength + 1 },
      { ifMatch, byteLength: 0 },
    ];
    for (const condition of failing)
      await assert.rejects(store.delete("bkt", "k", condition), code("PreconditionFailed"));
    assert.deepEqual(await store.head("bkt", "k"), head);
    await store.delete("bkt", "k", { ifMatch, lastModifiedMs, byteLength });
    await assert.rejects(store.head("bkt", "k"), code("NoSuchKey"));
    await assert.rejects(store.delete("bkt", "k", { ifMatch: "*" }), code("PreconditionFailed"));
    await store.delete("bkt", "k", { lastModifiedMs, byteLength });
    const puts = await store.put("bkt", "once", from("x"), { signal });
    const deletes = Array.from({ length: 8 }, () => store.delete("bkt", "once", { ifMatch: puts.etag }));
    const outcomes = await Promise.allSettled(deletes);
    const successCount = outcomes.filter((outcome) => outcome.status === "fulfilled").length;
    assert.ok(successCount >= 1);
    if (!allowed.has("concurrent deletes succeed")) assert.equal(successCount, 1);
    await assert.rejects(store.head("bkt", "once"), code("NoSuchKey"));
  });

  test(`${name}: a write whose upload or bucket is deleted meanwhile fails as if it did not exist`, async () => {
    await using opened = await open();
    const { store } = opened;
    /** Returns a body of 3 MiB that calls `meanwhile` after half of its bytes. */
    const interrupted = (meanwhile: () => Promise<void>) =>
      Readable.from(
        (async function* () {
          for (let n = 0; n < 48; n += 1) {
            if (n === 24) await meanwhile();
            yield Buffer.alloc(2 ** 16, n);
          }
        })(),
      );
    const { uploadId } = await store.createUpload("bkt", "m", plain);
    const id = { bucket: "bkt", key: "m", uploadId };
    const part = store.putPart(
      id,
      1,
      interrupted(() => store.abortUpload(id)),
      { signal },
    );
    await assert.rejects(part, code("NoSuchUpload"));
    const put = store.put(
      "bkt",
      "k",
      interrupted(() => store.deleteBucket("bkt")),
      { signal },
    );
    await assert.rejects(put, code("NoSuchBucket"));
    await store.createBucket("bkt");
    assert.deepEqual(await keysOf(store), []);
    const other = await store.createUpload("bkt", "m", plain);
    const inBucket = { bucket: "bkt", key: "m", uploadId: other.uploadId };
    const removed = store.putPart(
      inBucket,
      1,
      interrupted(() => store.deleteBucket("bkt")),
      { signal },
    );
    await assert.rejects(removed, (error) => code("NoSuchBucket")(error) || code("NoSuchUpload")(error));
    assert.deepEqual(await (await opened.reopened()).buckets(), []);
  });

  test(`${name}: concurrent creations and deletions of a bucket, with writes, end with the bucket or without it`, async () => {
    await using opened = await open();
    const { store } = opened;
    const expected = new Set(["BucketAlreadyOwnedByYou", "BucketNotEmpty", "NoSuchBucket"]);
    const calls: (() => Promise<unknown>)[] = [
      () => store.createBucket("storm"),
      () => store.deleteBucket("storm"),
      () => store.put("storm", "k", from(Buffer.alloc(1_500_000)), { signal }),
      () => store.delete("storm", "k"),
      () => store.createUpload("storm", "m", plain),
    ];
    if (allowed.has("deleted buckets fail writes")) expected.add("ServiceUnavailable");
    const outcomes = await Promise.allSettled(Array.from({ length: 30 }, () => calls.map((call) => call())).flat());
    for (const outcome of outcomes) {
      if (outcome.status === "fulfilled") continue;
      assert.ok(expected.has((outcome.reason as { code?: string }).code ?? ""), String(outcome.reason));
    }
    assert.deepEqual(await (await opened.reopened()).buckets(), await store.buckets());
  });

  test(`${name}: a read in progress is not changed by an overwrite or a deletion of its key`, async () => {
    await using opened = await open();
    const data = randomBytes(2 ** 21);
    await opened.store.put("bkt", "k", from(data), { signal });
    const { body } = await opened.store.get("bkt", "k");
    await opened.store.put("bkt", "k", from("new"), { signal });
    await opened.store.delete("bkt", "k");
    assert.deepEqual(await buffer(body), data);
    await assert.rejects(opened.store.head("bkt", "k"), code("NoSuchKey"));
    await assert.rejects(opened.store.get("bkt", "k"), code("NoSuchKey"));
  });

  test(`${name}: parts in any order make one object, across a restart, and completing twice returns the same`, async () => {
    await using opened = await open();
    const head = await opened.store.createUpload("bkt", "m", { ...plain, checksumAlgorithm: "crc32" });
    const id = { bucket: "bkt", key: "m", uploadId: head.uploadId };
    const data = [randomBytes(5 * 2 ** 20), randomBytes(5 * 2 ** 20), randomBytes(10)];
    const expect: BodyExpectation = { algorithms: ["crc32"], announced: () => ({}) };
    await opened.store.putPart(id, 3, from(data[2] ?? ""), { signal, expect });
    await opened.store.putPart(id, 1, from("first try"), { signal, expect });
    await opened.store.putPart(id, 1, from(data[0] ?? ""), { signal, expect });
    const store = await opened.reopened();
    await store.putPart(id, 2, from(data[1] ?? ""), { signal, expect });
    const { items: parts } = await store.listParts(id, { afterNumber: 0, countMax: 10 });
    assert.deepEqual(
      parts.map((part) => part.byteLength),
      [5 * 2 ** 20, 5 * 2 ** 20, 10],
    );
    const wrong = parts.map((part) => ({ ...part, etag: '"0"' }));
    await assert.rejects(store.completeUpload(id, wrong, { signal }), code("InvalidPart"));
    const swapped = [...parts.slice(0, 2).toReversed(), ...parts.slice(2)];
    await assert.rejects(store.completeUpload(id, swapped, { signal }), code("InvalidPartOrder"));
    const generated = await store.completeUpload(id, parts, { signal });
    const etag = createHash("md5")
      .update(Buffer.concat(data.map(md5)))
      .digest("hex");
    assert.equal(generated.etag, `"${etag}-3"`);
    const checksums = Buffer.concat(data.map((part) => Buffer.from(computeDigest("crc32", part), "base64")));
    assert.deepEqual(generated.checksums, { crc32: `${computeDigest("crc32", checksums)}-3` });
    assert.deepEqual(await bytesOf(store, "m"), Buffer.concat(data));
    const again = store.completeUpload(id, parts, { signal });
    if (allowed.has("uploads complete once")) await assert.rejects(again, code("NoSuchUpload"));
    else assert.deepEqual(await again, generated);
    await assert.rejects(store.listParts(id, { afterNumber: 0, countMax: 10 }), code("NoSuchUpload"));
  });

  test(`${name}: a small part before the last, an aborted upload and an unknown upload are rejected`, async () => {
    await using opened = await open();
    const { store } = opened;
    const { uploadId } = await store.createUpload("bkt", "m", plain);
    const id = { bucket: "bkt", key: "m", uploadId };
    const parts = [
      await store.putPart(id, 1, from("a"), { signal }),
      await store.putPart(id, 2, from("b"), { signal }),
    ];
    await assert.rejects(store.completeUpload(id, parts, { signal }), code("EntityTooSmall"));
    await assert.rejects(store.putPart(id, 10_001, from("a"), { signal }), code("InvalidArgument"));
    await store.abortUpload(id);
    await assert.rejects(store.putPart(id, 1, from("a"), { signal }), code("NoSuchUpload"));
    if (!allowed.has("unknown uploads abort")) {
      const unknown = allowed.has("keys are file paths") ? "unknown" : "../bkt";
      await assert.rejects(store.abortUpload({ ...id, uploadId: unknown }), code("NoSuchUpload"));
    }
    const uploads = await store.listUploads("bkt", { prefix: "", after: null, countMax: 10 });
    assert.deepEqual(uploads, { items: [], isTruncated: false });
  });

  test(`${name}: uploads are listed by key and start, parts by number, in pages that begin after a position`, async () => {
    await using opened = await open();
    const { store } = opened;
    const generated: string[] = [];
    for (const key of ["b", "a/2", "\u{10000}", "a/1", "b", "\uffee"]) {
      generated.push((await store.createUpload("bkt", key, plain)).uploadId);
    }
    const [b1 = "", a2, high, a1 = "", b2, wide] = generated;
    const ids = async (on: BucketStore, options: Partial<ListUploadsOptions>) => {
      const page = await on.listUploads("bkt", { prefix: "", after: null, countMax: 100, ...options });
      return [...page.items.map(({ uploadId }) => uploadId), page.isTruncated];
    };
    const inOrder = [a1, a2, b1, b2, wide, high];
    const byKey = allowed.has("uploads listed by start") ? [] : [store, await opened.reopened()];
    for (const on of byKey) {
      assert.deepEqual(await ids(on, {}), [...inOrder, false]);
      assert.deepEqual(await ids(on, { countMax: 2 }), [a1, a2, true]);
      assert.deepEqual(await ids(on, { countMax: 0 }), [true]);
      assert.deepEqual(await ids(on, { prefix: "a/" }), [a1, a2, false]);
      assert.deepEqual(await ids(on, { after: { key: "b", uploadId: null } }), [wide, high, false]);
      if (allowed.has("upload id markers fail")) continue;
      assert.deepEqual(await ids(on, { prefix: "a/", after: { key: "a/1", uploadId: a1 } }), [a2, false]);
      assert.deepEqual(await ids(on, { after: { key: "b", uploadId: b1 } }), [...inOrder.slice(3), false]);
      assert.deepEqual(await ids(on, { after: { key: "c", uploadId: "gone" } }), [wide, high, false]);
    }
    const again = await opened.reopened();
    const id = { bucket: "bkt", key: "b", uploadId: b1 };
    for (const number of [7, 10_000, 1]) await again.putPart(id, number, from("x"), { signal });
    const numbers = async (afterNumber: number, countMax: number) => {
      const page = await again.listParts(id, { afterNumber, countMax });
      return [...page.items.map(({ partNumber }) => partNumber), page.isTruncated];
    };
    assert.deepEqual(await numbers(0, 10), [1, 7, 10_000, false]);
    assert.deepEqual(await numbers(0, 2), [1, 7, true]);
    assert.deepEqual(await numbers(7, 1), [10_000, false]);
    assert.deepEqual(await numbers(10_000, 1), [false]);
  });

  test(`${name}: buckets are created once, listed, and deleted only when empty`, async () => {
    await using opened = await open();
    const { store } = opened;
    await assert.rejects(store.createBucket("bkt"), code("BucketAlreadyOwnedByYou"));
    for (const bad of ["..", "A-b", "a", "1.2.3.4", "a/b"])
      await assert.rejects(store.createBucket(bad), code("InvalidBucketName"));
    await store.put("bkt", "k", from("x"), { signal });
    await assert.rejects(store.deleteBucket("bkt"), code("BucketNotEmpty"));
    await store.delete("bkt", "k");
    await store.delete("bkt", "k");
    await store.deleteBucket("bkt");
    assert.deepEqual(await store.buckets(), []);
    await assert.rejects(store.put("bkt", "k", from("x"), { signal }), code("NoSuchBucket"));
    assert.deepEqual(await (await opened.reopened()).buckets(), []);
  });
}
