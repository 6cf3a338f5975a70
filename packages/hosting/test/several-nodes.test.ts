/** Hosting over several nodes: the placement of instances and copies, and the error for one that fits on no node. */
import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import type { InstanceSpec } from "../src/index.ts";
import type { NodeDescription } from "../src/nodes/index.ts";
import { parseNodeId } from "../src/nodes/node.ts";
import { nodeWith } from "../src/nodes/node-fixture.ts";
import { DocumentMemory } from "../src/records/contracts/index.ts";
import { componentSettled, createComponent, deployShared, spec, updateComponent } from "./components-fixture.ts";
import { owner } from "./hosting-fixture.ts";
import { TrafficFixture, until, type Responder } from "./traffic-fixture.ts";

const mebi = 2 ** 20;

/** Returns two nodes of the given memory, and records in `input` the node of each opened instance. */
function twoNodes(memoryMebi: number) {
  const nodes = ["a", "b"].map((id): NodeDescription => ({ ...nodeWith(memoryMebi * mebi), id: parseNodeId(id) }));
  const input: string[] = [];
  return { nodes, given: input, onOpen: ({ node }: InstanceSpec) => void input.push(node) };
}

test("instances are spread over nodes; one that fits on no node is rejected with the shortage, and running ones continue", async () => {
  const { nodes, given, onOpen } = twoNodes(200);
  await using bench = await TrafficFixture.open(undefined, null, { nodes, onOpen });
  await bench.deploy("e", [{ name: "one", VariantName: "v", InitialInstanceCount: 2 }]);
  assert.deepEqual(given, ["a", "b"]);
  // Three instances need 384 of 400 MiB. The nodes have enough memory in total, but no single one does.
  await assert.rejects(bench.hosting.endpoints.resize("e", [{ variantName: "v", instanceCount: 3 }], owner), {
    code: "ResourceLimitExceeded",
    message:
      "The nodes have enough free memory together, but none can hold an instance of 128 MiB: the node a, which comes closest, lacks 56 MiB of " +
      "memory. Instances do not move between nodes: fewer instances, a lower GALATEA_MODEL_MEMORY_BYTES in the Environment of the model's " +
      "containers, or deleting other endpoints and transform jobs on one node would free enough.",
  });
  assert.deepEqual(await bench.status("e"), ["InService", "e", null]);
  assert.equal((await bench.call("e", "x")).container, "one");
  // A placement waits for memory of a draining instance.
  await bench.hosting.endpoints.resize("e", [{ variantName: "v", instanceCount: 1 }], owner);
  await bench.settled("e");
  await bench.hosting.endpoints.resize("e", [{ variantName: "v", instanceCount: 2 }], owner);
  await bench.settled("e");
  assert.deepEqual(await bench.status("e"), ["InService", "e", null]);
  assert.deepEqual(given, ["a", "b", "b"]);
});

test("an instance or a component copy larger than every single node is rejected at once", async () => {
  const { nodes, given, onOpen } = twoNodes(300);
  await using bench = await TrafficFixture.open(undefined, null, { nodes, onOpen });
  const refusal = {
    code: "ResourceLimitExceeded",
    message:
      "No node is large enough for an instance of 328 MiB: the node a, which comes closest, lacks 28 MiB of memory. A lower " +
      "GALATEA_MODEL_MEMORY_BYTES in the Environment of the model's containers or a larger node would be enough.",
  };
  await assert.rejects(bench.deploy("large", [{ name: "one", VariantName: "v", modelBytes: 200 * mebi }]), refusal);
  await bench.deploy("e", [{ name: "two", VariantName: "v" }]);
  await bench.configure("larger", [{ name: "three", VariantName: "v", modelBytes: 200 * mebi }]);
  await assert.rejects(bench.update("e", "larger"), refusal);
  await deployShared(bench, "shared", { InitialInstanceCount: 2 });
  const copies = spec("four", 200 / 1024);
  await assert.rejects(createComponent(bench, "shared", "four", copies, 1), refusal);
  assert.deepEqual([await bench.status("e"), given], [["InService", "e", null], ["a"]]);
});

test("a new endpoint is refused while instances of another one drain on the only node that could run it", async () => {
  const { nodes, given, onOpen } = twoNodes(200);
  await using bench = await TrafficFixture.open(undefined, null, { nodes, onOpen });
  await bench.deploy("on-a", [{ name: "one", VariantName: "v" }]);
  await bench.deploy("on-b", [{ name: "two", VariantName: "v" }]);
  const blocked = bench.call("on-b", "hold");
  await until("the request is pending", () => bench.heldCount() === 1);
  await bench.hosting.endpoints.delete("on-b", owner);
  await until("its instance drains", () => !bench.hosting.isRunning("on-b"));
  await bench.configure("new", [{ name: "three", VariantName: "v" }]);
  const create = () =>
    bench.hosting.endpoints.create({ name: "new", configName: "new", owner, tags: [], deploymentConfig: null });
  await assert.rejects(create(), {
    code: "ResourceLimitExceeded",
    message: /none can hold an instance of 128 MiB/,
  });
  bench.signal("SIGUSR2");
  await blocked;
  await until("the deleted endpoint's instance has ended", () => bench.running().length === 1);
  await until("it is deleted", () => !bench.hosting.hasEndpoint("on-b"));
  await create();
  await bench.settled("new");
  assert.deepEqual([(await bench.status("new"))[0], given], ["InService", ["a", "b", "b"]]);
});

test("one of two endpoints created at the same moment is rejected if only one of them fits", async () => {
  const { nodes, given, onOpen } = twoNodes(200);
  await using bench = await TrafficFixture.open(undefined, null, { nodes, onOpen });
  await bench.deploy("on-a", [{ name: "one", VariantName: "v" }]);
  await bench.configure("new", [{ name: "two", VariantName: "v" }]);
  const create = (name: string) =>
    bench.hosting.endpoints.create({ name, configName: "new", owner, tags: [], deploymentConfig: null });
  const [first, second] = await Promise.allSettled([create("first"), create("second")]);
  assert.equal(first.status, "fulfilled");
  assert.match(String(second.status === "rejected" && second.reason), /none can hold an instance of 128 MiB/);
  await bench.settled("first");
  assert.deepEqual([(await bench.status("first"))[0], given], ["InService", ["a", "b"]]);
  // After the deletion of `first`, one node has memory for one instance. The record of `third` reserves it before the
  // instance is placed.
  await bench.hosting.endpoints.delete("first", owner);
  await until("it is deleted", () => !bench.hosting.hasEndpoint("first"));
  await create("third");
  await assert.rejects(create("fourth"), { code: "ResourceLimitExceeded", message: /none can hold/ });
  await bench.settled("third");
  assert.deepEqual([(await bench.status("third"))[0], given], ["InService", ["a", "b", "b"]]);
});

test("copies of a component run on the nodes of their instances, which components share, also after a restart", async () => {
  const documents = new DocumentMemory();
  const first = twoNodes(3000);
  const placed = async (bench: TrafficFixture, name: string) =>
    (await bench.hosting.components.find(name, owner)).copies.map(({ instance, node }) => `${instance} ${node}`);
  {
    await using bench = await TrafficFixture.open(documents, null, first);
    await deployShared(bench, "shared", { InitialInstanceCount: 2 });
    await createComponent(bench, "shared", "one", spec("one"), 2);
    await componentSettled(bench, "one");
    assert.deepEqual(await placed(bench, "one"), ["0 a", "1 b"]);
    await createComponent(bench, "shared", "two", spec("two"), 1);
    await componentSettled(bench, "two");
    assert.deepEqual(await placed(bench, "two"), ["0 a"]);
    await updateComponent(bench, "two", { copyCount: 2 });
    await componentSettled(bench, "two");
    assert.deepEqual(await placed(bench, "two"), ["0 a", "1 b"]);
    assert.deepEqual(first.given.toSorted(), ["a", "a", "b", "b"]);
    await updateComponent(bench, "one", { copyCount: 1 });
    await componentSettled(bench, "one");
    await until("one copy has ended", () => bench.running().length === 3);
  }
  const next = twoNodes(3000);
  await using bench = await TrafficFixture.open(documents, null, next);
  await until("they are back", () => bench.running().length === 3);
  assert.deepEqual(next.given.toSorted(), ["a", "a", "b"]);
  assert.equal((await bench.call("shared", "x", null, "two")).container, "two");
});

test("an instance that outlives the platform is counted on its node, and further ones are placed on others", async () => {
  const directory = await mkdtemp(join(tmpdir(), "gal-nodes-"));
  await using closing = new AsyncDisposableStack();
  closing.defer(() => rm(directory, { recursive: true, force: true }));
  const documents = new DocumentMemory();
  const first = twoNodes(200);
  let before: Responder;
  {
    await using bench = await TrafficFixture.open(documents, null, { ...first, directory, isDetached: true });
    await bench.deploy("on-a", [{ name: "one", VariantName: "v" }]);
    await bench.deploy("on-b", [{ name: "two", VariantName: "v" }]);
    await bench.hosting.endpoints.delete("on-a", owner);
    await until("the deleted endpoint's instance has ended", () => bench.running().length === 1);
    before = await bench.call("on-b", "x");
  }
  const next = twoNodes(200);
  await using bench = await TrafficFixture.open(documents, null, { ...next, directory });
  assert.deepEqual(await bench.call("on-b", "x"), before);
  await bench.deploy("new", [{ name: "three", VariantName: "v" }]);
  assert.deepEqual([...first.given, ...next.given], ["a", "b", "b", "a"]);
});
