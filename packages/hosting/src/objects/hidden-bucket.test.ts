import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable } from "node:stream";
import { test } from "node:test";
import { silentLogger } from "@galatea/base";
import { openDirectoryStore } from "./directory-store.ts";
import { hideBuckets } from "./hidden-bucket.ts";
import { objectStoreContract } from "./object-store.contract.ts";
import type { BucketStore, ObjectHead, UploadOptions } from "./object-store.ts";

const signal = new AbortController().signal;
const upload: UploadOptions = { checksumAlgorithm: null, checksumType: "COMPOSITE" };
const list = { prefix: "", delimiter: "", startAfter: "", keysMax: 10 };

const isHidden = (bucket: string) => bucket === "hidden";

objectStoreContract("a store with a hidden bucket", openHiding);

async function openHiding() {
  const folder = await mkdtemp(join(tmpdir(), "hidden-bucket-"));
  const stores: BucketStore[] = [];
  const open = async () => {
    const store = await openDirectoryStore({ folder, logger: silentLogger });
    stores.push(store);
    return store;
  };
  const inner = await open();
  await inner.createBucket("bkt");
  await inner.createBucket("hidden");
  return {
    inner,
    store: hideBuckets(inner, isHidden),
    reopened: async () => hideBuckets(await open(), isHidden),
    async [Symbol.asyncDispose]() {
      for (const store of stores) await store[Symbol.asyncDispose]();
      await rm(folder, { recursive: true });
    },
  };
}

test("no call lists, reads, writes, copies or deletes anything of a hidden bucket", async () => {
  await using opened = await openHiding();
  const { store, inner } = opened;
  const body = () => Readable.from([Buffer.from("x")]);
  await inner.put("hidden", "k", body(), { signal });
  const started = await inner.createUpload("hidden", "u", upload);
  await store.put("bkt", "k", body(), { signal });
  const secret = await inner.head("hidden", "k");
  const calls: readonly (() => Promise<unknown>)[] = [
    () => store.headBucket("hidden"),
    () => store.deleteBucket("hidden"),
    () => store.head("hidden", "k"),
    () => store.get("hidden", "k"),
    () => store.put("hidden", "k", body(), { signal }),
    () => store.delete("hidden", "k"),
    () => store.list("hidden", list),
    () => store.link(secret, "bkt", "copy", { signal }),
    async () => store.link((await store.head("bkt", "k")) satisfies ObjectHead, "hidden", "copy", { signal }),
    () => store.changeHeaders("hidden", "k", {}),
    () => store.createUpload("hidden", "k", upload),
    () => store.putPart(started, 1, body(), { signal }),
    () => store.completeUpload(started, [], { signal }),
    () => store.abortUpload(started),
    () => store.headUpload(started),
    () => store.listParts(started, { afterNumber: 0, countMax: 10 }),
    () => store.listUploads("hidden", { prefix: "", after: null, countMax: 10 }),
  ];
  for (const call of calls) await assert.rejects(call, { code: "NoSuchBucket" }, String(call));
  await assert.rejects(store.createBucket("hidden"), { code: "BucketAlreadyExists" });
  assert.deepEqual(
    (await store.buckets()).map(({ bucket }) => bucket),
    ["bkt"],
  );
  assert.equal((await inner.list("hidden", list)).objects.length, 1);
});
