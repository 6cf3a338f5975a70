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
        const world = new ModelCacheFixture({
          memoryBytesMax: budget * mebi,
          diskBytesMax: (budget + 14) * mebi,
          loadsMax,
        });
        sizes.forEach((size, index) => world.put(`t${index}`, size * mebi));
        const running: Promise<unknown>[] = [];
        for (const { target, turns, gap } of requests) {
          running.push(world.invoke(`t${target}`, never, turns));
          for (let index = 0; index < gap; index += 1) await nextTick();
          assert(world.cache.memoryUsedBytes <= budget * mebi, "never above the memory budget");
          assert(world.memoryBytes <= budget * mebi, "nor is the container");
          assert(world.cache.diskUsedBytes <= (budget + 14) * mebi, "never above the disk budget");
        }
        await Promise.all(running);
        assert.deepEqual(
          world.view.loadedModels().map(({ id }) => id),
          world.cache.states().map(({ id }) => id),
        );
        assert.equal(world.view.loadedCount, world.view.loadedModels().length);
        await world.cache[Symbol.asyncDispose]();
      },
    ),
    { numRuns: 60 },
  );
});

test("the least recently used idle model is unloaded first", async () => {
  const world = new ModelCacheFixture({ memoryBytesMax: 3 * mebi });
  for (const target of ["a", "b", "c", "d", "e"]) world.put(target);
  for (const target of ["a", "b", "c"]) await world.invoke(target);
  assert.equal(await world.invoke("a"), true);
  const busy = await world.cache.acquire("b", never);
  await world.invoke("d");
  assert.deepEqual(world.targets(), ["a", "b", "d"]);
  await world.invoke("e");
  assert.deepEqual(world.targets(), ["b", "d", "e"]);
  busy[Symbol.dispose]();
  assert.equal(world.events.filter((event) => event.startsWith("unload")).join(), "unload c,unload a");
});

test("a load that gets a 507 unloads another model and is retried; it fails when no other model is loaded", async () => {
  const world = new ModelCacheFixture({});
  world.containerBytesMax = 2 * mebi;
  for (const target of ["a", "b", "c"]) world.put(target);
  world.put("huge", 3 * mebi);
  for (const target of ["a", "b", "c"]) await world.invoke(target);
  assert.deepEqual(world.targets(), ["b", "c"]);
  const error = await world.invoke("huge").catch((thrown: unknown) => thrown);
  assert(error instanceof ModelLoadError && error.status === 507);
  assert.deepEqual(world.targets(), []);
  assert.equal(await world.invoke("a"), false);
});

test("a load waits until a busy model is idle, and its caller waits only up to the limit", async () => {
  const world = new ModelCacheFixture({ memoryBytesMax: mebi, waitMsMax: 40 });
  world.put("a");
  world.put("b");
  const busy = await world.cache.acquire("a", never);
  const error = await world.cache.acquire("b", never).catch((thrown: unknown) => thrown);
  assert(
    error instanceof ModelNotReadyError && /is being loaded: it waits for memory/.test(error.message),
    String(error),
  );
  busy[Symbol.dispose]();
  while (!world.targets().includes("b")) await nextTick();
  assert.equal(await world.invoke("b"), true, "the load went on without its waiter");
});

test("a cancelled caller gets its abort reason, and the load continues for the others", async () => {
  const world = new ModelCacheFixture({});
  world.put("a");
  const held = Promise.withResolvers<void>();
  world.hold = held.promise;
  const controller = new AbortController();
  const leaver = world.cache.acquire("a", controller.signal);
  const stayer = world.invoke("a");
  await nextTick();
  controller.abort(new Error("client gone"));
  await assert.rejects(leaver, /client gone/);
  held.resolve();
  assert.equal(await stayer, false);
  assert.equal(world.events.filter((event) => event === "load a").length, 1);
});

test("a failed load fails all waiting callers, and the next request loads again", async () => {
  const world = new ModelCacheFixture({});
  world.put("a");
  const object = world.objects.get("a") as StoredModel;
  object.refusal = { outcome: "refused", status: 400, message: "initialize raised" };
  const failures = await Promise.allSettled([world.invoke("a"), world.invoke("a")]);
  assert(failures.every(({ status }) => status === "rejected"));
  assert.equal(world.events.filter((event) => event === "load a").length, 1);
  delete object.refusal;
  assert.equal(await world.invoke("a"), false);
});

test("a replaced object is loaded at once, while running requests still use the old version", async () => {
  const world = new ModelCacheFixture({});
  world.put("a/b c.tar.gz");
  const old = await world.cache.acquire("a/b c.tar.gz", never);
  world.put("a/b c.tar.gz", mebi, "2");
  const fresh = await world.cache.acquire("a/b c.tar.gz", never);
  assert.notEqual(old.id, fresh.id);
  assert.match(fresh.id, /^[0-9A-Za-z._]+$/);
  assert(world.loaded.has(old.id), "in use");
  old[Symbol.dispose]();
  while (world.loaded.has(old.id) || world.trees.disk.kept.has(old.id)) await nextTick();
  fresh[Symbol.dispose]();
  assert.equal(await world.invoke("a/b c.tar.gz"), true);
});

test("an object that is replaced while its load is queued is loaded in its new version", async () => {
  const world = new ModelCacheFixture({ loadsMax: 1 });
  for (const target of ["first", "waits"]) world.put(target);
  const { promise, resolve } = Promise.withResolvers<void>();
  world.hold = promise;
  const first = world.invoke("first");
  while (world.loaded.size === 0) await nextTick();
  const waiting = world.cache.acquire("waits", never);
  for (let index = 0; index < 5; index++) await nextTick();
  world.put("waits", 2 * mebi, "2");
  resolve();
  const lease = await waiting;
  assert.equal(world.loaded.get(lease.id)?.bytes, 2 * mebi);
  lease[Symbol.dispose]();
  await first;
});

test("a deleted object is unloaded and removed, and is loaded again when it is put again", async () => {
  const world = new ModelCacheFixture({});
  world.put("a");
  await world.invoke("a");
  world.objects.delete("a");
  await assert.rejects(world.invoke("a"), ModelMissingError);
  while (world.loaded.size > 0 || world.trees.disk.kept.size > 0) await nextTick();
  assert.equal(world.cache.diskUsedBytes, 0);
  world.put("a");
  assert.equal(await world.invoke("a"), false);
});

test("the memory of a model whose unload fails is not reused until the unload succeeds", async () => {
  const world = new ModelCacheFixture({ memoryBytesMax: 2 * mebi, unloadRetryMs: 1 });
  for (const target of ["a", "b", "c"]) world.put(target);
  await world.invoke("a");
  await world.invoke("b");
  world.unloadFailures = 3;
  const waiting = world.invoke("c");
  while (world.unloadFailures > 0) {
    assert.equal(world.cache.memoryUsedBytes, 2 * mebi);
    assert.ok(!world.events.includes("load c"), "it waits for memory");
    await nextTick();
  }
  await waiting;
  assert.deepEqual(world.events.slice(-5), ["unload a", "unload a", "unload a", "unload a", "load c"]);
  assert.equal(world.memoryBytes, 2 * mebi);
  await world.cache[Symbol.asyncDispose]();
});

test("unloaded models stay on disk until the disk limit is reached; the error for a model larger than the disk says so", async () => {
  const world = new ModelCacheFixture({ memoryBytesMax: mebi, diskBytesMax: 2.5 * mebi });
  for (const target of ["a", "b", "c"]) world.put(target);
  world.put("huge", 3 * mebi);
  await world.invoke("a");
  await world.invoke("b");
  await world.invoke("a");
  assert.equal(world.events.filter((event) => event === "unpack a").length, 1);
  await world.invoke("c");
  await world.invoke("b");
  assert.equal(world.events.filter((event) => event === "unpack b").length, 2);
  const error = await world.invoke("huge").catch((thrown: unknown) => thrown);
  assert(error instanceof ModelLoadError && error.cause instanceof ArchiveError);
  assert.match(error.message, /No space left on device/);
  assert(world.cache.diskUsedBytes <= 2.5 * mebi);
});

test("after the container has died no memory is charged, and the next request loads the model again", async () => {
  const world = new ModelCacheFixture({});
  world.put("a");
  await world.invoke("a");
  world.loaded.clear();
  world.memoryBytes = 0;
  world.cache.containerLost();
  assert.equal(world.cache.memoryUsedBytes, 0);
  assert.equal(await world.invoke("a"), false);
  assert.equal(world.events.filter((event) => event === "unpack a").length, 1);
});

test("a request that waits for a model gets 503 when the cache is disposed", async () => {
  const world = new ModelCacheFixture({ loadsMax: 1 });
  world.put("first");
  world.put("second");
  const { promise, resolve } = Promise.withResolvers<void>();
  world.hold = promise;
  const first = world.cache.acquire("first", never);
  const second = world.cache.acquire("second", never);
  while (world.loaded.size === 0) await nextTick();
  const closed = world.cache[Symbol.asyncDispose]();
  await assert.rejects(second, (error) => error instanceof ModelLoadError && error.status === 503);
  resolve();
  await first;
  await closed;
});

test("a load that dies with its container is retried in the next one, and fails with 503 after a second death", async () => {
  const world = new ModelCacheFixture({});
  world.objects.set("once", { etag: "1", bytes: mebi, deaths: 1 });
  using lease = await world.cache.acquire("once", never);
  assert.equal(world.loaded.get(lease.id)?.target, "once");
  world.objects.set("always", { etag: "1", bytes: mebi, deaths: 9 });
  await assert.rejects(
    world.cache.acquire("always", never),
    (error) =>
      error instanceof ModelLoadError &&
      error.status === 503 &&
      error.message.startsWith("the container ended while it loaded the model"),
  );
  assert.equal(world.objects.get("always")?.deaths, 7);
  // The container's end also removed the other model from memory.
  assert.equal(world.view.loadedCount, 0);
  assert.equal(world.cache.memoryUsedBytes, 0);
});

test("caches on one node together stay within its memory; each evicts what exceeds its guarantee, and a load that cannot fit gets 507", async () => {
  const nodeMemory = new NodeMemory({ bytesMax: 100 * mebi, reservedBytes: () => 30 * mebi });
  const plain = new ModelCacheFixture({}, new MemoryDisk(), { nodeMemory });
  const promised = new ModelCacheFixture({}, new MemoryDisk(), { nodeMemory, guaranteedBytes: 30 * mebi });
  for (const world of [plain, promised]) {
    for (const name of ["a", "b", "c", "d"]) world.objects.set(name, { etag: "1", bytes: 20 * mebi });
    world.objects.set("huge", { etag: "1", bytes: 80 * mebi });
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
