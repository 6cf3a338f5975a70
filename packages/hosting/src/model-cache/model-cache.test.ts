import assert from "node:assert/strict";
import { test } from "node:test";
import * as fc from "fast-check";
import { ArchiveError } from "../objects/index.ts";
import { modelTreesContract } from "../contracts/index.ts";
import { mebi, nextTick, ModelCacheFixture, type StoredModel } from "./model-cache-fixture.ts";
import { MemoryDisk, MemoryTrees } from "./memory-trees-fixture.ts";
import { NodeMemory } from "../nodes/index.ts";
import { ModelLoadError, ModelMissingError, ModelNotReadyError } from "./model-container.ts";
import { containerModelId } from "./model-version.ts";

const never = new AbortController().signal;

modelTreesContract("trees in memory", async () => {
  const objects = new Map<string, StoredModel>();
  const disk = new MemoryDisk();
  const open = () => new MemoryTrees(disk, { find: (target) => objects.get(target), unpacked: () => {} });
  return {
    trees: open(),
    async put(target, bytes) {
      const etag = String(bytes);
      objects.set(target, { etag, bytes });
      return { id: containerModelId(target, etag), target, etag, archiveBytes: bytes };
    },
    holds: async (id) => disk.kept.has(id),
    damage: async (id) => void disk.damaged.add(id),
    reopen: async () => open(),
    async [Symbol.asyncDispose]() {},
  };
});

test("property: any mixture of requests is served within the budgets, and no busy model is unloaded", async () => {
  const request = fc.record({ target: fc.nat(9), turns: fc.nat(6), gap: fc.nat(3) });
  await fc.assert(
    fc.asyncProperty(
      fc.array(request, { maxLength: 60 }),
      fc.array(fc.integer({ min: 1, max: 3 }), { minLength: 10, maxLength: 10 }),
      fc.integer({ min: 3, max: 8 }),
      fc.integer({ min: 1, max: 3 }),
      async (requests, sizes, budget, loadsMax) => {
        const fixture = new ModelCacheFixture({
          memoryBytesMax: budget * mebi,
          diskBytesMax: (budget + 14) * mebi,
          loadsMax,
        });
        sizes.forEach((size, index) => fixture.put(`t${index}`, size * mebi));
        const running: Promise<unknown>[] = [];
        for (const { target, turns, gap } of requests) {
          running.push(fixture.invoke(`t${target}`, never, turns));
          for (let index = 0; index < gap; index += 1) await nextTick();
          assert(fixture.cache.memoryUsedBytes <= budget * mebi, "never above the memory budget");
          assert(fixture.memoryBytes <= budget * mebi, "nor is the container");
          assert(fixture.cache.diskUsedBytes <= (budget + 14) * mebi, "never above the disk budget");
        }
        await Promise.all(running);
        assert.deepEqual(
          fixture.view.loadedModels().map(({ id }) => id),
          fixture.cache.states().map(({ id }) => id),
        );
        assert.equal(fixture.view.loadedCount, fixture.view.loadedModels().length);
        await fixture.cache[Symbol.asyncDispose]();
      },
    ),
    { numRuns: 60 },
  );
});

test("the least recently used idle model is unloaded first", async () => {
  const fixture = new ModelCacheFixture({ memoryBytesMax: 3 * mebi });
  for (const target of ["a", "b", "c", "d", "e"]) fixture.put(target);
  for (const target of ["a", "b", "c"]) await fixture.invoke(target);
  assert.equal(await fixture.invoke("a"), true);
  const busy = await fixture.cache.acquire("b", never);
  await fixture.invoke("d");
  assert.deepEqual(fixture.targets(), ["a", "b", "d"]);
  await fixture.invoke("e");
  assert.deepEqual(fixture.targets(), ["b", "d", "e"]);
  busy[Symbol.dispose]();
  assert.equal(fixture.events.filter((event) => event.startsWith("unload")).join(), "unload c,unload a");
});

test("a load that gets a 507 unloads another model and is retried; it fails when no other model is loaded", async () => {
  const fixture = new ModelCacheFixture({});
  fixture.containerBytesMax = 2 * mebi;
  for (const target of ["a", "b", "c"]) fixture.put(target);
  fixture.put("huge", 3 * mebi);
  for (const target of ["a", "b", "c"]) await fixture.invoke(target);
  assert.deepEqual(fixture.targets(), ["b", "c"]);
  const error = await fixture.invoke("huge").catch((thrown: unknown) => thrown);
  assert(error instanceof ModelLoadError && error.status === 507);
  assert.deepEqual(fixture.targets(), []);
  assert.equal(await fixture.invoke("a"), false);
});

test("a load waits until a busy model is idle, and its caller waits only up to the limit", async () => {
  const fixture = new ModelCacheFixture({ memoryBytesMax: mebi, waitMsMax: 40 });
  fixture.put("a");
  fixture.put("b");
  const busy = await fixture.cache.acquire("a", never);
  const error = await fixture.cache.acquire("b", never).catch((thrown: unknown) => thrown);
  assert(
    error instanceof ModelNotReadyError && /is being loaded: it waits for memory/.test(error.message),
    String(error),
  );
  busy[Symbol.dispose]();
  while (!fixture.targets().includes("b")) await nextTick();
  assert.equal(await fixture.invoke("b"), true, "the load went on without its waiter");
});

test("a cancelled caller gets its abort reason, and the load continues for the others", async () => {
  const fixture = new ModelCacheFixture({});
  fixture.put("a");
  const pending = Promise.withResolvers<void>();
  fixture.hold = pending.promise;
  const controller = new AbortController();
  const leaver = fixture.cache.acquire("a", controller.signal);
  const stayer = fixture.invoke("a");
  await nextTick();
  controller.abort(new Error("client gone"));
  await assert.rejects(leaver, /client gone/);
  pending.resolve();
  assert.equal(await stayer, false);
  assert.equal(fixture.events.filter((event) => event === "load a").length, 1);
});

test("a failed load fails all waiting callers, and the next request loads again", async () => {
  const fixture = new ModelCacheFixture({});
  fixture.put("a");
  const object = fixture.objects.get("a") as StoredModel;
  object.refusal = { outcome: "refused", status: 400, message: "initialize raised" };
  const failures = await Promise.allSettled([fixture.invoke("a"), fixture.invoke("a")]);
  assert(failures.every(({ status }) => status === "rejected"));
  assert.equal(fixture.events.filter((event) => event === "load a").length, 1);
  delete object.refusal;
  assert.equal(await fixture.invoke("a"), false);
});

test("a replaced object is loaded at once, while running requests still use the old version", async () => {
  const fixture = new ModelCacheFixture({});
  fixture.put("a/b c.tar.gz");
  const old = await fixture.cache.acquire("a/b c.tar.gz", never);
  fixture.put("a/b c.tar.gz", mebi, "2");
  const fresh = await fixture.cache.acquire("a/b c.tar.gz", never);
  assert.notEqual(old.id, fresh.id);
  assert.match(fresh.id, /^[0-9A-Za-z._]+$/);
  assert(fixture.loaded.has(old.id), "in use");
  old[Symbol.dispose]();
  while (fixture.loaded.has(old.id) || fixture.trees.disk.kept.has(old.id)) await nextTick();
  fresh[Symbol.dispose]();
  assert.equal(await fixture.invoke("a/b c.tar.gz"), true);
});

test("an object that is replaced while its load is queued is loaded in its new version", async () => {
  const fixture = new ModelCacheFixture({ loadsMax: 1 });
  for (const target of ["first", "waits"]) fixture.put(target);
  const { promise, resolve } = Promise.withResolvers<void>();
  fixture.hold = promise;
  const first = fixture.invoke("first");
  while (fixture.loaded.size === 0) await nextTick();
  const waiting = fixture.cache.acquire("waits", never);
  for (let index = 0; index < 5; index++) await nextTick();
  fixture.put("waits", 2 * mebi, "2");
  resolve();
  const lease = await waiting;
  assert.equal(fixture.loaded.get(lease.id)?.bytes, 2 * mebi);
  lease[Symbol.dispose]();
  await first;
});

test("a deleted object is unloaded and removed, and is loaded again when it is put again", async () => {
  const fixture = new ModelCacheFixture({});
  fixture.put("a");
  await fixture.invoke("a");
  fixture.objects.delete("a");
  await assert.rejects(fixture.invoke("a"), ModelMissingError);
  while (fixture.loaded.size > 0 || fixture.trees.disk.kept.size > 0) await nextTick();
  assert.equal(fixture.cache.diskUsedBytes, 0);
  fixture.put("a");
  assert.equal(await fixture.invoke("a"), false);
});

test("the memory of a model whose unload fails is not reused until the unload succeeds", async () => {
  const fixture = new ModelCacheFixture({ memoryBytesMax: 2 * mebi, unloadRetryMs: 1 });
  for (const target of ["a", "b", "c"]) fixture.put(target);
  await fixture.invoke("a");
  await fixture.invoke("b");
  fixture.unloadFailures = 3;
  const waiting = fixture.invoke("c");
  while (fixture.unloadFailures > 0) {
    assert.equal(fixture.cache.memoryUsedBytes, 2 * mebi);
    assert.ok(!fixture.events.includes("load c"), "it waits for memory");
    await nextTick();
  }
  await waiting;
  assert.deepEqual(fixture.events.slice(-5), ["unload a", "unload a", "unload a", "unload a", "load c"]);
  assert.equal(fixture.memoryBytes, 2 * mebi);
  await fixture.cache[Symbol.asyncDispose]();
});

test("unloaded models stay on disk until the disk limit is reached; the error for a model larger than the disk says so", async () => {
  const fixture = new ModelCacheFixture({ memoryBytesMax: mebi, diskBytesMax: 2.5 * mebi });
  for (const target of ["a", "b", "c"]) fixture.put(target);
  fixture.put("huge", 3 * mebi);
  await fixture.invoke("a");
  await fixture.invoke("b");
  await fixture.invoke("a");
  assert.equal(fixture.events.filter((event) => event === "unpack a").length, 1);
  await fixture.invoke("c");
  await fixture.invoke("b");
  assert.equal(fixture.events.filter((event) => event === "unpack b").length, 2);
  const error = await fixture.invoke("huge").catch((thrown: unknown) => thrown);
  assert(error instanceof ModelLoadError && error.cause instanceof ArchiveError);
  assert.match(error.message, /No space left on device/);
  assert(fixture.cache.diskUsedBytes <= 2.5 * mebi);
});

test("after the container has died no memory is charged, and the next request loads the model again", async () => {
  const fixture = new ModelCacheFixture({});
  fixture.put("a");
  await fixture.invoke("a");
  fixture.loaded.clear();
  fixture.memoryBytes = 0;
  fixture.cache.containerLost();
  assert.equal(fixture.cache.memoryUsedBytes, 0);
  assert.equal(await fixture.invoke("a"), false);
  assert.equal(fixture.events.filter((event) => event === "unpack a").length, 1);
});

test("a request that waits for a model gets 503 when the cache is disposed", async () => {
  const fixture = new ModelCacheFixture({ loadsMax: 1 });
  fixture.put("first");
  fixture.put("second");
  const { promise, resolve } = Promise.withResolvers<void>();
  fixture.hold = promise;
  const first = fixture.cache.acquire("first", never);
  const second = fixture.cache.acquire("second", never);
  while (fixture.loaded.size === 0) await nextTick();
  const closed = fixture.cache[Symbol.asyncDispose]();
  await assert.rejects(second, (error) => error instanceof ModelLoadError && error.status === 503);
  resolve();
  await first;
  await closed;
});

test("a load that dies with its container is retried in the next one, and fails with 503 after a second death", async () => {
  const fixture = new ModelCacheFixture({});
  fixture.objects.set("once", { etag: "1", bytes: mebi, deaths: 1 });
  using lease = await fixture.cache.acquire("once", never);
  assert.equal(fixture.loaded.get(lease.id)?.target, "once");
  fixture.objects.set("always", { etag: "1", bytes: mebi, deaths: 9 });
  await assert.rejects(
    fixture.cache.acquire("always", never),
    (error) =>
      error instanceof ModelLoadError &&
      error.status === 503 &&
      error.message.startsWith("the container ended while it loaded the model"),
  );
  assert.equal(fixture.objects.get("always")?.deaths, 7);
  // The container's end also removed the other model from memory.
  assert.equal(fixture.view.loadedCount, 0);
  assert.equal(fixture.cache.memoryUsedBytes, 0);
});

test("caches on one node together stay within its memory; each evicts what exceeds its guarantee, and a load that cannot fit gets 507", async () => {
  const nodeMemory = new NodeMemory({ bytesMax: 100 * mebi, reservedBytes: () => 30 * mebi });
  const plain = new ModelCacheFixture({}, new MemoryDisk(), { nodeMemory });
  const promised = new ModelCacheFixture({}, new MemoryDisk(), { nodeMemory, guaranteedBytes: 30 * mebi });
  for (const fixture of [plain, promised]) {
    for (const name of ["a", "b", "c", "d"]) fixture.objects.set(name, { etag: "1", bytes: 20 * mebi });
    fixture.objects.set("huge", { etag: "1", bytes: 80 * mebi });
  }
  const held = () => [plain.view.loadedCount, promised.view.loadedCount];
  for (const name of ["a", "b", "c", "d"]) {
    using _lease = await plain.cache.acquire(name, never);
  }
  // 30 MiB are guaranteed to the other cache.
  assert.deepEqual(held(), [3, 0]);
  const leases = [];
  for (const name of ["a", "b", "c", "d"]) leases.push(await promised.cache.acquire(name, never));
  assert.deepEqual(held(), [1, 4]);
  assert.ok(plain.cache.memoryUsedBytes + promised.cache.memoryUsedBytes <= 100 * mebi);
  // All models of the other cache have requests in flight, so the load waits.
  using _last = await plain.cache.acquire("d", never);
  const waiting = plain.cache.acquire("a", never);
  await nextTick();
  for (const lease of leases) lease[Symbol.dispose]();
  using _next = await waiting;
  assert.deepEqual(held(), [2, 3]);
  await assert.rejects(plain.cache.acquire("huge", never), (error: ModelLoadError) => {
    assert.equal(error.status, 507);
    assert.match(error.message, /^Not enough memory: the model needs about 80 MiB and 70 MiB are free on the node/);
    return true;
  });
  await Promise.all([plain.cache[Symbol.asyncDispose](), promised.cache[Symbol.asyncDispose]()]);
});
