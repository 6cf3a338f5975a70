/** Inference components over real processes: placed on shared instances, scaled to zero and back, updated under load, killed. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { nodeWith } from "@galatea/hosting/nodes/node-fixture.ts";
import { AwsError } from "@galatea/base";
import {
  componentSettled,
  createComponent,
  deployShared,
  spec,
  updateComponent,
} from "../../hosting/test/components-fixture.ts";
import { owner } from "../../hosting/test/hosting-fixture.ts";
import { hostingScalableResources } from "@galatea/hosting/scaling-targets";
import { TrafficFixture, until } from "../../hosting/test/traffic-fixture.ts";

const signal = new AbortController().signal;

const settled = componentSettled;

async function create(...requested: Parameters<typeof createComponent>): Promise<void> {
  await createComponent(...requested);
  await settled(requested[0], requested[2]);
}

async function update(...requested: Parameters<typeof updateComponent>): Promise<void> {
  await updateComponent(...requested);
  await settled(requested[0], requested[1]);
}

async function stateOf(bench: TrafficFixture, name: string) {
  const { state, copies } = await bench.hosting.components.find(name, owner);
  const reason = state.at === "Failed" ? state.reason : state.at === "InService" ? state.lastFailure : null;
  return { at: state.at, reason, copyCount: copies.length, inService: bench.hosting.components.inServiceCount(name) };
}

async function refused(call: Promise<unknown>): Promise<AwsError> {
  const error = await call.then(
    () => null,
    (thrown: unknown) => thrown,
  );
  assert.ok(error instanceof AwsError, String(error));
  return error;
}

test("components share instances and are invoked by name; each has its own copies, logs and metrics", async () => {
  await using bench = await TrafficFixture.open();
  await deployShared(bench, "both");
  await create(bench, "both", "one", spec("one"), 2);
  await create(bench, "both", "two", spec("two"));
  assert.deepEqual(await stateOf(bench, "one"), { at: "InService", reason: null, copyCount: 2, inService: 2 });
  assert.deepEqual([...bench.running()].toSorted(), ["one", "one", "two"]);
  const pids = new Set<number>();
  for (let count = 0; count < 40; count += 1) {
    const { container, pid } = await bench.call("both", "x", null, "one");
    assert.equal(container, "one");
    pids.add(pid);
  }
  assert.equal(pids.size, 2);
  assert.equal((await bench.call("both", "x", null, "TWO")).container, "two");
  assert.equal(bench.sums.get("one Invocations"), 40);
  assert.equal(bench.sums.get("one InvocationsPerCopy"), 20);
  assert.equal(bench.sums.get("both v two Invocations"), 1);
  assert.match((await refused(bench.call("both", "x"))).message, /requires an inference component name header/);
  const unknown = await refused(bench.call("both", "x", null, "three"));
  assert.equal(unknown.message, "Inference Component three of endpoint both not found.");
  assert.match(
    (await refused(bench.hosting.endpoints.delete("both", owner))).message,
    /have to be deleted first: "one", "two"/,
  );
  await bench.hosting.components.delete("one", owner);
  await settled(bench, "one");
  await until("its copies have ended", () => bench.running().join() === "two");
  await bench.hosting.components.delete("two", owner);
  await settled(bench, "two");
  await bench.hosting.endpoints.delete("both", owner);
  await bench.settled("both");
  assert.deepEqual(bench.running(), []);
});

test("a component that does not fit now fails with the shortage, and one that can never fit is rejected", async () => {
  await using bench = await TrafficFixture.open();
  await deployShared(bench, "full");
  await create(bench, "full", "large", spec("large", 5));
  await create(bench, "full", "second", spec("second", 5));
  const { at, reason } = await stateOf(bench, "second");
  assert.equal(at, "Failed");
  assert.match(
    reason ?? "",
    /^There are not enough hardware resources on the instances.*needs 0.5 CPU cores, 5120 MiB of memory/,
  );
  const error = await refused(create(bench, "full", "third", spec("third", 50)));
  assert.match(error.message, /more than an instance of ml.m5.large has on this platform/);
  await update(bench, "large", { copyCount: 2 });
  const scaled = await stateOf(bench, "large");
  assert.deepEqual([scaled.at, scaled.copyCount, scaled.inService], ["InService", 1, 1]);
  assert.match(scaled.reason ?? "", /not enough hardware resources/);
  await bench.hosting.endpoints.resize("full", [{ variantName: "v", instanceCount: 2 }], owner);
  await bench.settled("full");
  await update(bench, "large", { copyCount: 2 });
  assert.deepEqual(await stateOf(bench, "large"), { at: "InService", reason: null, copyCount: 2, inService: 2 });
  const shrink = bench.hosting.endpoints.resize("full", [{ variantName: "v", instanceCount: 1 }], owner);
  assert.match((await refused(shrink)).message, /copies of inference components are on 2 of them/);
});

test("ManagedInstanceScaling adds the instances that copies need, and removes empty ones", async () => {
  await using bench = await TrafficFixture.open();
  const scaling = { Status: "ENABLED", MinInstanceCount: 0, MaxInstanceCount: 3 };
  await deployShared(bench, "grows", { ManagedInstanceScaling: scaling, InitialInstanceCount: 1 });
  const instances = async () =>
    (await bench.hosting.endpoints.find("grows", owner)).generations[0].variants[0]?.settled.instanceCount;
  await create(bench, "grows", "large", spec("large", 5), 3);
  assert.deepEqual(await stateOf(bench, "large"), { at: "InService", reason: null, copyCount: 3, inService: 3 });
  assert.equal(await instances(), 3);
  await update(bench, "large", { copyCount: 4 });
  assert.match((await stateOf(bench, "large")).reason ?? "", /not enough hardware resources/);
  await update(bench, "large", { copyCount: 0 });
  await until("its instances are released", async () => (await instances()) === 0);
  const asleep = await refused(bench.call("grows", "x", null, "large"));
  assert.equal(asleep.code, "ValidationError");
  assert.match(asleep.message, /^Inference Component has no capacity to process this request/);
  assert.equal(bench.sums.get("large NoCapacityInvocationFailures"), 1);
  await update(bench, "large", { copyCount: 1 });
  assert.equal((await bench.call("grows", "x", null, "large")).container, "large");
});

test("a rolling update of a component under load fails no request, a failing one is rolled back, and a copy that dies is replaced", async () => {
  await using bench = await TrafficFixture.open();
  await deployShared(bench, "moving");
  await create(bench, "moving", "model", spec("old"), 2);
  const clients = bench.clients("moving", 4, "model");
  const batch = { Type: "INSTANCE_COUNT", Value: 1 } as const;
  const rolling = { batch, rollbackBatch: null, waitMs: 50, limitMs: null };
  await update(bench, "model", { spec: spec("broken"), rolling });
  const back = await stateOf(bench, "model");
  assert.deepEqual([back.at, back.copyCount, back.inService], ["InService", 2, 2]);
  assert.match(back.reason ?? "", /did not pass the ping health check.*the model breaks/s);
  await update(bench, "model", { spec: spec("new"), rolling });
  assert.deepEqual(await stateOf(bench, "model"), { at: "InService", reason: null, copyCount: 2, inService: 2 });
  await until("the old copies have ended", () => bench.running().every((name) => name === "new"));
  const { failures } = await clients.end();
  assert.deepEqual(Object.fromEntries(failures), {});
  const { pid } = await bench.call("moving", "x", null, "model");
  process.kill(pid, "SIGKILL");
  for (let count = 0; count < 10; count += 1)
    assert.equal((await bench.call("moving", "x", null, "model")).container, "new");
});

test("Application Auto Scaling sets the number of copies, down to zero, and reports why copies are missing", async () => {
  await using bench = await TrafficFixture.open();
  await deployShared(bench, "scaled");
  await create(bench, "scaled", "model", spec("model", 2), 0);
  const scalable = hostingScalableResources(bench.hosting, owner);
  const dimension = "sagemaker:inference-component:DesiredCopyCount";
  const id = { resourceId: "inference-component/model", dimension };
  assert.deepEqual(await scalable.capacity(id), { desired: 0, running: 0, isMoving: false });
  for (const copyCount of [2, 0, 1]) {
    await (
      await scalable.scale(id, copyCount, signal)
    ).done;
    assert.deepEqual(await scalable.capacity(id), { desired: copyCount, running: copyCount, isMoving: false });
  }
  const { done } = await scalable.scale(id, 5, signal);
  await assert.rejects(done, /not enough hardware resources/);
  assert.deepEqual(await scalable.capacity(id), { desired: 1, running: 1, isMoving: false });
  assert.equal(await scalable.capacity({ ...id, resourceId: "inference-component/nobody" }), null);
});

/** An endpoint whose component `a` has two copies of 1,152 MiB, each of which holds a request, on a node for three and a half. */
async function openHeld() {
  const bench = await TrafficFixture.open(undefined, null, { nodes: [nodeWith(3.5 * 1152 * 2 ** 20)] });
  await deployShared(bench, "shared");
  await create(bench, "shared", "a", spec("old"), 2);
  const blocked = [0, 1].map((index) => bench.call("shared", `hold ${index}`, null, "a"));
  await until("each copy has one pending request", () => bench.heldCount() === 2);
  return { bench, held: blocked };
}

test("a draining copy counts its memory until it ends: the error of a component that does not fit says what drains, and until when", async () => {
  const { bench, held } = await openHeld();
  await using _closing = bench;
  await update(bench, "a", { copyCount: 1 });
  const second = await refused(createComponent(bench, "shared", "b", spec("b"), 2));
  assert.equal(second.code, "ResourceLimitExceeded");
  assert.match(
    second.message,
    /current utilization of 2304 MiB and a request delta of 2304 MiB.* 576 MiB are missing.* 1152 MiB of the utilization are freed when draining instances have ended \(inference component "a"\), at the latest at 2\S+Z: retry then\.$/,
  );
  const third = await refused(createComponent(bench, "shared", "c", spec("c"), 3));
  assert.match(third.message, /\(inference component "a"\), at the latest at 2\S+Z\.$/);
  const larger = await refused(updateComponent(bench, "a", { spec: spec("new", 3) }));
  assert.match(larger.message, /current utilization of 2304 MiB and a request delta of 2048 MiB/);
  bench.signal("SIGUSR2");
  await Promise.all(held);
  await until("the draining copy has ended", () => bench.running().length === 1);
  await until("the component can be created", () =>
    createComponent(bench, "shared", "b", spec("b"), 2).then(
      () => true,
      () => false,
    ),
  );
});

test("a rolling update of a component that does not fit on the node waits for draining copies", async () => {
  const { bench, held } = await openHeld();
  await using _closing = bench;
  let most = 0;
  const looking = setInterval(() => (most = Math.max(most, bench.running().length)), 2);
  using _looking = { [Symbol.dispose]: () => clearInterval(looking) };
  const batch = { Type: "INSTANCE_COUNT", Value: 1 } as const;
  const rolling = { batch, rollbackBatch: null, waitMs: 0, limitMs: null };
  await updateComponent(bench, "a", { spec: spec("new"), rolling });
  const copiesOf = async (number: number) => {
    const { copies } = await bench.hosting.components.find("a", owner);
    return copies.filter((copy) => copy.spec === number).length;
  };
  await until(
    "an old copy is replaced by a new one",
    async () => (await copiesOf(1)) === 1 && (await copiesOf(2)) === 1,
  );
  for (let count = 0; count < 100; count += 1) await bench.call("shared", `${count}`, null, "a");
  assert.deepEqual([await copiesOf(1), bench.running().toSorted()], [1, ["new", "old", "old"]]);
  bench.signal("SIGUSR2");
  await Promise.all(held);
  await settled(bench, "a");
  assert.deepEqual(await stateOf(bench, "a"), { at: "InService", reason: null, copyCount: 2, inService: 2 });
  await until("the old copies have ended", () => bench.running().every((name) => name === "new"));
  assert.equal(most, 3);
});

test("an update of a component whose next copy exceeds an account limit is rolled back with that limit", async () => {
  await using bench = await TrafficFixture.open(undefined, null, { hosting: { containersMax: 1 } });
  await deployShared(bench, "shared");
  await create(bench, "shared", "a", spec("old"), 1);
  await update(bench, "a", { spec: spec("new") });
  const kept = await stateOf(bench, "a");
  assert.deepEqual([kept.at, kept.copyCount, kept.inService], ["InService", 1, 1]);
  assert.match(kept.reason ?? "", /service limit .* is 1 Containers, with current utilization of 1 Containers/);
});

test("an update of a component without memory for new copies ends old ones first, except the last one", async () => {
  await using bench = await TrafficFixture.open(undefined, null, { nodes: [nodeWith(2.5 * 1152 * 2 ** 20)] });
  await deployShared(bench, "shared");
  await create(bench, "shared", "a", spec("old"), 2);
  let most = 0;
  const looking = setInterval(() => (most = Math.max(most, bench.running().length)), 2);
  using _looking = { [Symbol.dispose]: () => clearInterval(looking) };
  const clients = bench.clients("shared", 2, "a");
  await update(bench, "a", { spec: spec("new") });
  assert.deepEqual(await stateOf(bench, "a"), { at: "InService", reason: null, copyCount: 2, inService: 2 });
  await until("the old copies have ended", () => bench.running().every((name) => name === "new"));
  assert.equal(most, 2);
  await update(bench, "a", { copyCount: 1 });
  await create(bench, "shared", "b", spec("b"), 1);
  await update(bench, "a", { spec: spec("newer") });
  const kept = await stateOf(bench, "a");
  assert.deepEqual([kept.at, kept.copyCount, kept.inService], ["InService", 1, 1]);
  assert.match(kept.reason ?? "", /The node has no memory for the next of 1 more copies, which takes 1024 MiB/);
  assert.deepEqual(Object.fromEntries((await clients.end()).failures), {});
});
