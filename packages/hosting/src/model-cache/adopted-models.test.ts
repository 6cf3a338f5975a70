import assert from "node:assert/strict";
import { test } from "node:test";
import { mebi, nextTick, ModelCacheFixture } from "./model-cache-fixture.ts";

const never = new AbortController().signal;

test("a cache takes over what an earlier process unpacked, within its disk limit, and unpacks only replaced models again", async () => {
  const names = ["a", "b", "c"];
  const before = new ModelCacheFixture({});
  for (const name of names) {
    before.objects.set(name, { etag: `"${name}"`, bytes: 10 * mebi });
    using _lease = await before.cache.acquire(name, never);
  }
  await before.cache[Symbol.asyncDispose]();

  const after = new ModelCacheFixture({ diskBytesMax: 25 * mebi }, before.trees.disk);
  for (const [name, object] of before.objects) after.objects.set(name, object);
  after.objects.set("c", { etag: '"new"', bytes: 10 * mebi });
  await after.cache.adopt([]);
  assert.equal(after.trees.disk.kept.size, 2, "the one unpacked first did not fit");
  assert(after.cache.diskUsedBytes <= 25 * mebi);
  for (const name of ["b", "c"]) {
    using _lease = await after.cache.acquire(name, never);
  }
  assert.deepEqual(
    after.events.filter((event) => event.startsWith("unpack")),
    ["unpack c"],
  );
  await after.cache[Symbol.asyncDispose]();
});

test("models that a running container has loaded count as loaded in a new cache, and models unknown to the cache are unloaded", async () => {
  const before = new ModelCacheFixture({});
  for (const name of ["a", "b"]) {
    before.objects.set(name, { etag: `"${name}"`, bytes: 10 * mebi });
    using _lease = await before.cache.acquire(name, never);
  }
  await before.cache[Symbol.asyncDispose]();

  const after = new ModelCacheFixture({ memoryBytesMax: 25 * mebi }, before.trees.disk);
  for (const [name, object] of before.objects) after.objects.set(name, object);
  after.objects.set("c", { etag: '"c"', bytes: 10 * mebi });
  for (const [id, model] of before.loaded) after.loaded.set(id, model);
  after.loaded.set("unknown", { target: "unknown", bytes: 1 });
  const held = [...after.loaded].map(([id, { bytes }]) => ({ id, memoryBytes: bytes }));
  await after.cache.adopt(held);
  assert.equal(after.targets().length, 2);
  assert.equal(after.cache.memoryUsedBytes, 20 * mebi);
  {
    using lease = await after.cache.acquire("a", never);
    assert.equal(lease.cacheHit, true);
  }
  {
    using _other = await after.cache.acquire("c", never);
  }
  assert.equal(after.view.copyOf("b"), "absent", "the model without requests was evicted");
  assert.deepEqual(after.events.toSorted(), ["load c", "unload b", "unload unknown", "unpack c"]);
  await after.cache[Symbol.asyncDispose]();
});

test("a cache with keepsModels off removes the models of an earlier process, and each model after its last request", async () => {
  const before = new ModelCacheFixture({});
  before.objects.set("a", { etag: '"a"', bytes: 10 * mebi });
  using _lease = await before.cache.acquire("a", never);
  await before.cache[Symbol.asyncDispose]();
  const after = new ModelCacheFixture({ keepsModels: false }, before.trees.disk);
  after.objects.set("b", { etag: '"b"', bytes: 10 * mebi });
  await after.cache.adopt([]);
  const first = await after.cache.acquire("b", never);
  {
    using _second = await after.cache.acquire("b", never);
  }
  assert.equal(after.view.copyOf("b"), "loaded");
  first[Symbol.dispose]();
  while (after.trees.disk.kept.size > 0) await nextTick();
  assert.deepEqual([after.view.copyOf("b"), after.cache.memoryUsedBytes, after.cache.diskUsedBytes], ["absent", 0, 0]);
  await after.cache[Symbol.asyncDispose]();
});
