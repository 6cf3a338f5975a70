/**
 * Many models on several instances, with real processes that count their loads, and clients that send requests
 * continuously.
 */
import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { nodeWith } from "../src/nodes/node-fixture.ts";
import { owner } from "./hosting-fixture.ts";
import { DocumentMemory } from "../src/records/contracts/index.ts";
import { ModelsFixture, type ModelResponse } from "./models-fixture.ts";
import { until } from "./traffic-fixture.ts";

const targetsOf = (count: number) => Array.from({ length: count }, (_, index) => `m${index}.tar.gz`);
const mebi = 2 ** 20;
const sum = (counts: ReadonlyMap<string, number>) => [...counts.values()].reduce((all, each) => all + each, 0);

test("each model is loaded on one instance, and moves without failed requests when instances are killed, added and removed", async () => {
  await using bench = await ModelsFixture.open();
  const targets = targetsOf(40);
  for (const target of targets) await bench.put(target, target);
  await bench.deploy("many", 3);
  let requestCount = 0;
  const next = () => targets[requestCount++ % targets.length] ?? "";
  const round = async () => {
    const from = requestCount;
    await until("each model was requested", () => requestCount >= from + 2 * targets.length);
  };
  const clients = bench.clients("many", 4, next);
  await round();
  // With random routing, there would be nearly three times as many loads.
  assert.equal(sum(bench.loads()), 40);
  const locations = new Map<string, Set<string>>();
  for (const target of targets) {
    const { instance } = await bench.call("many", target);
    locations.set(instance, (locations.get(instance) ?? new Set()).add(target));
  }
  assert.equal(locations.size, 3);

  const { pid, instance } = await bench.call("many", "m0.tar.gz");
  const heldCount = locations.get(instance)?.size ?? 0;
  process.kill(pid, "SIGKILL");
  await until("its successor has the model again", async () => {
    const response = await bench.call("many", "m0.tar.gz");
    return response.instance === instance && response.pid !== pid;
  });
  await round();
  // The models of the killed instance may be loaded on another instance, and again on the restarted one.
  const afterKill = sum(bench.loads());
  assert.ok(afterKill <= 40 + 2 * heldCount, `${afterKill} loads, of which 40 before; ${heldCount} were loaded`);

  await bench.resize("many", 1);
  await round();
  await bench.resize("many", 3);
  await until("models are on three instances again", async () => {
    const responses = await Promise.all(targets.map((target) => bench.call("many", target)));
    return new Set(responses.map((response) => response.instance)).size === 3;
  });
  await bench.configure("other", 2);
  await bench.update("many", "other");
  await bench.settled("many");
  await round();
  const { responseCount: answers, failures } = await clients.end();
  const inKilled = failures.filter((text) =>
    /error \(503\) from primary with message ".*other side closed"/.test(text),
  );
  assert.deepEqual(
    failures.filter((text) => !inKilled.includes(text)),
    [],
  );
  assert.ok(inKilled.length <= 5 && answers > 160, `${inKilled.length} failed, ${answers} answered`);
});

test("models in use are loaded on their new instance before requests are routed there, when instances are added, removed or replaced", async () => {
  await using bench = await ModelsFixture.open();
  const targets = targetsOf(24);
  for (const target of targets) await bench.put(target, target);
  await bench.deploy("warm", 3);
  await Promise.all(targets.map((target) => bench.call("warm", target)));
  await bench.configure("next", 2);
  const misses = () => bench.samples("ModelCacheHit").filter((hit) => hit === 0).length;
  assert.equal(misses(), 24);
  let requestCount = 0;
  const clients = bench.clients("warm", 4, () => targets[requestCount++ % targets.length] ?? "");
  const round = async () => {
    const from = requestCount;
    await until("each model was requested", () => requestCount >= from + 3 * targets.length);
  };
  for (const move of [
    () => bench.resize("warm", 1),
    () => bench.resize("warm", 3),
    async () => {
      await bench.update("warm", "next");
      await bench.settled("warm");
    },
  ]) {
    await move();
    await round();
    assert.equal(misses(), 24);
  }
  const { failures } = await clients.end();
  assert.deepEqual(failures, []);
});

test("draining instances serve their models until these are loaded elsewhere, and an endpoint that scales out again gets all its instances", async () => {
  await using bench = await ModelsFixture.open();
  const targets = targetsOf(12);
  // Each model takes a second to load.
  for (const target of targets) await bench.put(target, "slow");
  await bench.deploy("regrown", 3);
  const askAll = async () => await Promise.all(targets.map((target) => bench.call("regrown", target)));
  const before = new Set((await askAll()).map(({ instance }) => instance));
  assert.ok(before.size > 1);
  await bench.resize("regrown", 1);
  // An instance that still has a model serves its requests.
  await askAll();
  assert.equal(bench.samples("ModelCacheHit").filter((hit) => hit === 0).length, targets.length);
  await bench.resize("regrown", 3);
  await until("the instances that were to end have ended", async () => {
    const instances = (await askAll()).map(({ instance }) => instance);
    return new Set(instances.filter((instance) => before.has(instance))).size <= 1;
  });
  const { inServiceCounts } = await bench.hosting.endpoints.describe("regrown", owner);
  assert.deepEqual([...inServiceCounts.values()], [3]);
});

test("a hot model gets copies on at most half of the instances, loses them when it is cold, and other models do not move", async () => {
  await using bench = await ModelsFixture.open({ modelCopyColdMs: 3000 });
  const others = targetsOf(12);
  for (const target of ["hot", ...others]) await bench.put(target, target);
  await bench.deploy("hammered", 3);
  // The models are loaded one after the other. Concurrent requests could exceed the limit of an instance, so that
  // models would be loaded on others.
  for (const target of others) await bench.call("hammered", target);
  const askOthers = () => Promise.all(others.map((target) => bench.call("hammered", target)));
  const instances = new Set<string>();
  const hammer = async (count: number) => {
    for (const { instance } of await Promise.all(
      Array.from({ length: count }, () => bench.call("hammered", "hot", 20)),
    )) {
      instances.add(instance);
    }
  };
  // Requests queue on one instance while it loads the model. Later ones are distributed over both copies.
  await until("it has a further copy that serves", async () => {
    await Promise.all([hammer(40), askOthers()]);
    return instances.size > 1;
  });
  for (let round = 0; round < 10; round += 1) await Promise.all([hammer(40), askOthers()]);
  const hotCopies = () => (bench.loads().get("hot") ?? 0) - (bench.loads("unload").get("hot") ?? 0);
  assert.deepEqual([instances.size, hotCopies()], [2, 2]);
  await until("its additional copy is unloaded", async () => {
    await bench.call("hammered", "hot");
    return hotCopies() === 1;
  });
  await askOthers();
  // The other models were neither evicted nor copied.
  for (const target of others) assert.equal(bench.loads().get(target), 1, target);
  assert.deepEqual([...bench.loads("unload").keys()], ["hot"]);
  // Each instance records its own number of models, so that the metric's average is the number per instance.
  assert.ok(bench.samples("LoadedModelCount").every((count) => count <= 13));
});

test("a replaced or deleted archive is unloaded from every instance", async () => {
  await using bench = await ModelsFixture.open();
  await bench.put("hot", "old");
  await bench.deploy("replaced", 3);
  await until("two instances have it", async () => {
    await Promise.all(Array.from({ length: 40 }, () => bench.call("replaced", "hot", 20)));
    return bench.loads().get("hot") === 2;
  });
  await bench.put("hot", "new");
  assert.equal((await bench.call("replaced", "hot")).text, "new");
  await until("both old copies are unloaded", () => bench.loads("unload").get("hot") === 2);
  await until("two instances have the new one", async () => {
    const responses = await Promise.all(Array.from({ length: 40 }, () => bench.call("replaced", "hot", 20)));
    assert.ok(responses.every(({ text }) => text === "new"));
    return bench.loads().get("hot") === 4;
  });
  await bench.remove("hot");
  await assert.rejects(bench.call("replaced", "hot"), /Failed to download model data\(bucket: models, key: hot\)/);
  await until("all copies are unloaded", () => bench.loads("unload").get("hot") === 4);
});

test("with ModelCacheSetting Disabled each model is removed from memory and disk after its request", async () => {
  await using bench = await ModelsFixture.open();
  for (const target of ["a", "b"]) await bench.put(target, target);
  await bench.deploy("uncached", 2, { MultiModelConfig: { ModelCacheSetting: "Disabled" } });
  for (let round = 1; round <= 3; round += 1) {
    for (const target of ["a", "b"]) assert.equal((await bench.call("uncached", target)).text, target);
    await until("both copies are unloaded", () => sum(bench.loads("unload")) === 2 * round);
    await until("their files are deleted", async () => (await bench.unpacked()).length === 0);
  }
  assert.deepEqual(bench.samples("ModelCacheHit"), [0, 0, 0, 0, 0, 0]);
  assert.equal(bench.samples("ModelLoadingWaitTime").length, 6);
  // Concurrent requests share the loaded model.
  const responses = await Promise.all(Array.from({ length: 10 }, () => bench.call("uncached", "a", 50)));
  assert.ok(responses.every(({ text }) => text === "a"));
  await until("it is unloaded again", () => bench.loads("unload").get("a") === 4);
  assert.equal(bench.loads().get("a"), 4);
});

test("an update and a scale-out that exceed the node's memory are rejected, and the running instances continue", async () => {
  await using bench = await ModelsFixture.open({}, { nodes: [nodeWith(1024 * mebi)] });
  await bench.put("a", "a");
  const promising = (memoryMebi: number) => ({
    Environment: { GALATEA_MODEL_MEMORY_BYTES: String(memoryMebi * mebi) },
  });
  await bench.deploy("tight", 1, promising(200));
  await bench.configure("larger", 2, promising(300));
  const missing = (bytes: number) => ({
    code: "ResourceLimitExceeded",
    message: new RegExp(` ${bytes} MiB are missing`),
  });
  // Both fleets run until the new one is in service.
  await assert.rejects(bench.update("tight", "larger"), missing(328 + 2 * 428 - 1024));
  await assert.rejects(bench.resize("tight", 4), missing(4 * 328 - 1024));
  await bench.resize("tight", 3);
  assert.equal((await bench.call("tight", "a")).text, "a");
});

test("a request that waits for its model on a lost instance is served by another instance", async () => {
  await using bench = await ModelsFixture.open();
  await bench.put("a", "quick");
  await bench.deploy("lost", 2);
  const { instance, pid } = await bench.call("lost", "a");
  await bench.put("a", "held");
  await bench.holdLoads(true);
  const waiting = bench.call("lost", "a");
  await until("it is loaded again", () => bench.loads().get("a") === 2);
  await bench.breakInstance(instance);
  process.kill(pid, "SIGKILL");
  await bench.holdLoads(false);
  const response = await waiting;
  assert.equal(response.text, "held");
  assert.notEqual(response.instance, instance);
  assert.equal(bench.samples("Invocations").length, 2);
});

test("a request for a model on the only instance, which is lost, counts as the container's server error", async () => {
  await using bench = await ModelsFixture.open();
  await bench.put("a", "quick");
  await bench.deploy("gone", 1);
  const { instance, pid } = await bench.call("gone", "a");
  await bench.put("a", "slow");
  const waiting = bench.call("gone", "a");
  waiting.catch(() => {});
  await until("it is loaded again", () => bench.loads().get("a") === 2);
  await bench.breakInstance(instance);
  process.kill(pid, "SIGKILL");
  await assert.rejects(waiting, { code: "ModelError", statusFallback: 424 });
  const counts = ["Invocations", "Invocation4XXErrors", "Invocation5XXErrors", "InvocationModelErrors"];
  assert.deepEqual(
    counts.map((metric) => bench.samples(metric)),
    [
      [1, 1],
      [0, 0],
      [0, 1],
      [0, 1],
    ],
  );
});

/**
 * Opens hosting with two instances of a previous run, each with a loaded model. The process of the slow one is stopped
 * by SIGSTOP before the new run starts.
 */
async function openAdopting(restartWaitMsMax: number) {
  await using opening = new AsyncDisposableStack();
  const directory = await mkdtemp(join(tmpdir(), "gal-adopted-"));
  opening.defer(() => rm(directory, { recursive: true, force: true }));
  const lasting = { directory, documents: new DocumentMemory() };
  const byInstance = new Map<string, ModelResponse>();
  {
    await using bench = await ModelsFixture.open({}, { ...lasting, isDetached: true });
    await bench.deploy("adopted", 2);
    for (let count = 0; byInstance.size < 2; count += 1) {
      const target = `m${count}.tar.gz`;
      await bench.put(target, target);
      const response = await bench.call("adopted", target);
      byInstance.set(response.instance, response);
    }
  }
  const [quick, slow] = [...byInstance.values()];
  assert.ok(quick !== undefined && slow !== undefined);
  process.kill(slow.pid, "SIGSTOP");
  const bench = opening.use(await ModelsFixture.open({ restartWaitMsMax }, lasting));
  // A stopped process is continued before disposal. Otherwise, disposal would wait for the whole grace period.
  opening.defer(() => void process.kill(slow.pid, "SIGCONT"));
  const closing = opening.move();
  return { bench, quick, slow, [Symbol.asyncDispose]: () => closing.disposeAsync() };
}

test("after a restart of the platform a model is not loaded elsewhere while its instance is being adopted, and other models are served", async () => {
  await using adopting = await openAdopting(60_000);
  const { bench, quick, slow } = adopting;
  const waiting = bench.call("adopted", slow.text);
  assert.deepEqual(await bench.call("adopted", quick.text), quick);
  process.kill(slow.pid, "SIGCONT");
  assert.deepEqual(await waiting, slow);
  assert.equal(sum(bench.loads()), 0);
});

test("requests stop waiting for an instance whose adoption takes too long: its models are loaded on others", async () => {
  await using adopting = await openAdopting(200);
  const { bench, quick, slow } = adopting;
  await until("one instance is in service", () => bench.hosting.statistics().instancesInServiceCount === 1);
  assert.deepEqual(await bench.call("adopted", slow.text), { ...quick, text: slow.text });
});
