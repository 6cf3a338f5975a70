import assert from "node:assert/strict";
import { test } from "node:test";
import { mebi, turn, World } from "./agent-world-fixture.ts";

const never = new AbortController().signal;

test("an agent takes over what an earlier one unpacked, within its own disk bytes, and unpacks only what was replaced", async () => {
  const names = ["a", "b", "c"];
  const before = new World({});
  for (const name of names) {
    before.objects.set(name, { etag: `"${name}"`, bytes: 10 * mebi });
    using _lease = await before.agent.acquire(name, never);
  }
  await before.agent[Symbol.asyncDispose]();

  const after = new World({ diskBytesMax: 25 * mebi }, before.trees.disk);
  for (const [name, object] of before.objects) after.objects.set(name, object);
  after.objects.set("c", { etag: '"new"', bytes: 10 * mebi });
  await after.agent.adopt([]);
  assert.equal(after.trees.disk.kept.size, 2, "the one unpacked first did not fit");
  assert(after.agent.diskUsedBytes <= 25 * mebi);
  for (const name of ["b", "c"]) {
    using _lease = await after.agent.acquire(name, never);
  }
  assert.deepEqual(
    after.events.filter((event) => event.startsWith("unpack")),
    ["unpack c"],
  );
  await after.agent[Symbol.asyncDispose]();
});

test("models that the container still holds are loaded for the next agent, and what nothing is known of is unloaded", async () => {
  const before = new World({});
  for (const name of ["a", "b"]) {
    before.objects.set(name, { etag: `"${name}"`, bytes: 10 * mebi });
    using _lease = await before.agent.acquire(name, never);
  }
  await before.agent[Symbol.asyncDispose]();

  const after = new World({ memoryBytesMax: 25 * mebi }, before.trees.disk);
  for (const [name, object] of before.objects) after.objects.set(name, object);
  after.objects.set("c", { etag: '"c"', bytes: 10 * mebi });
  for (const [id, model] of before.loaded) after.loaded.set(id, model);
  after.loaded.set("unknown", { target: "unknown", bytes: 1 });
  const held = [...after.loaded].map(([id, { bytes }]) => ({ id, memoryBytes: bytes }));
  await after.agent.adopt(held);
  assert.equal(after.targets().length, 2);
  assert.equal(after.agent.memoryUsedBytes, 20 * mebi);
  {
    using lease = await after.agent.acquire("a", never);
    assert.equal(lease.cacheHit, true);
  }
  {
    using _other = await after.agent.acquire("c", never);
  }
  assert.equal(after.view.copyOf("b"), "absent", "the one that nobody asked for had to go");
  assert.deepEqual(after.events.toSorted(), ["load c", "unload b", "unload unknown", "unpack c"]);
  await after.agent[Symbol.asyncDispose]();
});

test("an agent that keeps no models gives up what an earlier one left, and each model with its last request", async () => {
  const before = new World({});
  before.objects.set("a", { etag: '"a"', bytes: 10 * mebi });
  using _lease = await before.agent.acquire("a", never);
  await before.agent[Symbol.asyncDispose]();
  const after = new World({ keepsModels: false }, before.trees.disk);
  after.objects.set("b", { etag: '"b"', bytes: 10 * mebi });
  await after.agent.adopt([]);
  const first = await after.agent.acquire("b", never);
  {
    using _second = await after.agent.acquire("b", never);
  }
  assert.equal(after.view.copyOf("b"), "loaded");
  first[Symbol.dispose]();
  while (after.trees.disk.kept.size > 0) await turn();
  assert.deepEqual([after.view.copyOf("b"), after.agent.memoryUsedBytes, after.agent.diskUsedBytes], ["absent", 0, 0]);
  await after.agent[Symbol.asyncDispose]();
});
