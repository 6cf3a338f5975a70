/**
 * Updates, resizes and stops of endpoints with real processes, while clients send requests continuously. No request
 * fails.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { nodeWith } from "../src/nodes/node-fixture.ts";
import type { AwsError } from "@galatea/base";
import type { DeploymentConfig, EndpointRecord } from "../src/index.ts";
import { DocumentMemory } from "../src/records/contracts/index.ts";
import { owner } from "./hosting-fixture.ts";
import { TrafficFixture, until } from "./traffic-fixture.ts";

const blueGreen = (
  routing: Partial<NonNullable<DeploymentConfig["BlueGreenUpdatePolicy"]>["TrafficRoutingConfiguration"]>,
  waitSeconds = 0.2,
): DeploymentConfig => ({
  BlueGreenUpdatePolicy: {
    TrafficRoutingConfiguration: { Type: "ALL_AT_ONCE", WaitIntervalInSeconds: waitSeconds, ...routing },
    TerminationWaitInSeconds: 0.1,
  },
});
const percent = (Value: number) => ({ Type: "CAPACITY_PERCENT", Value }) as const;
const rolling = (size = percent(50), waitSeconds = 0.1): DeploymentConfig => ({
  RollingUpdatePolicy: { MaximumBatchSize: size, WaitIntervalInSeconds: waitSeconds },
});

const rollingBothWays = (size = percent(25), waitSeconds = 0): DeploymentConfig => ({
  RollingUpdatePolicy: { MaximumBatchSize: size, WaitIntervalInSeconds: waitSeconds, RollbackMaximumBatchSize: size },
});

/**
 * Opens an endpoint with four instances on a node with memory for `instancesMax`. `most` returns the maximum number of
 * concurrent instances so far.
 */
async function openTight(instancesMax: number, documents = new DocumentMemory()) {
  const nodes = [nodeWith(instancesMax * 128 * 2 ** 20)];
  const bench = await TrafficFixture.open(documents, null, { nodes });
  await bench.deploy("tight", [{ name: "old", VariantName: "v", InitialInstanceCount: 4 }]);
  await bench.configure("next", [{ name: "new", VariantName: "v", InitialInstanceCount: 4 }]);
  let most = 0;
  const looking = setInterval(() => (most = Math.max(most, bench.running().length)), 2);
  return {
    bench,
    most: () => most,
    [Symbol.asyncDispose]: async () => {
      clearInterval(looking);
      await bench[Symbol.asyncDispose]();
    },
  };
}

/** Calls `look` with each endpoint record that is written from now on. */
function whenWritten({ held }: DocumentMemory, look: (record: EndpointRecord) => void): void {
  const set = held.set.bind(held);
  held.set = (id, document) => {
    if (document.kind === "endpoint") look(JSON.parse(document.body) as EndpointRecord);
    set(id, document);
    return held;
  };
}

/** Returns a set of the traffic shares of the new generation between 0 and 1. Shares are added as they are recorded. */
function sharesWritten(documents: DocumentMemory): ReadonlySet<number> {
  const shares = new Set<number>();
  whenWritten(documents, ({ generations }) => {
    const share = generations[1]?.trafficShare ?? 0;
    if (share > 0 && share < 1) shares.add(share);
  });
  return shares;
}

for (const [kind, deploymentConfig, expected] of [
  ["all at once", null, []],
  ["as a canary", blueGreen({ Type: "CANARY", CanarySize: percent(30) }), [0.3]],
  ["in linear steps", blueGreen({ Type: "LINEAR", LinearStepSize: percent(40) }), [0.4, 0.8]],
  ["rolling", rolling(), [0.5]],
] as const) {
  test(`an update ${kind} under load fails no request, follows its traffic shares, and ends the old instances`, async () => {
    const documents = new DocumentMemory();
    await using bench = await TrafficFixture.open(documents);
    await bench.deploy("moved", [{ name: "old", VariantName: "v", InitialInstanceCount: 2 }]);
    await bench.configure("next", [{ name: "new", VariantName: "v", InitialInstanceCount: 2 }]);
    const clients = bench.clients("moved");
    const written = sharesWritten(documents);
    await bench.update("moved", "next", { deploymentConfig });
    await bench.settled("moved");
    assert.deepEqual(await bench.status("moved"), ["InService", "next", null]);
    assert.deepEqual([...written], expected);
    await until("the old instances have ended", () => bench.running().every((name) => name === "new"));
    assert.equal(bench.running().length, 2);
    const { results: answers, failures } = await clients.end();
    assert.deepEqual(Object.fromEntries(failures), {});
    assert.ok((answers.get("v old") ?? 0) > 0 && (answers.get("v new") ?? 0) > 0);
    assert.equal((await bench.call("moved", "x", "v")).container, "new");
    const total = (answers.get("v old") ?? 0) + (answers.get("v new") ?? 0) + 1;
    assert.equal(bench.sums.get("moved v Invocations"), total);
    const own = ["moved", "next"].map((config) => bench.sums.get(`moved v ${config} Invocations`));
    assert.deepEqual(own, [answers.get("v old"), (answers.get("v new") ?? 0) + 1]);
  });
}

test("an update whose instances do not start is rolled back with the reason and fails no request", async () => {
  await using bench = await TrafficFixture.open();
  await bench.deploy("kept", [{ name: "old" }]);
  await bench.configure("broken", [{ name: "new", VariantName: "old", isBroken: true }]);
  const clients = bench.clients("kept");
  for (const deploymentConfig of [null, blueGreen({ Type: "CANARY", CanarySize: percent(30) }), rolling()]) {
    await bench.update("kept", "broken", { deploymentConfig });
    await bench.settled("kept");
    const [at, configName, reason] = await bench.status("kept");
    assert.deepEqual([at, configName], ["InService", "kept"]);
    assert.match(reason ?? "", /did not pass the ping health check.*the model breaks/s);
  }
  await bench.update("kept", "kept");
  await bench.settled("kept");
  assert.deepEqual(await bench.status("kept"), ["InService", "kept", null]);
  assert.deepEqual(Object.fromEntries((await clients.end()).failures), {});
  await until("nothing else runs", () => bench.running().length === 1);
});

test("a rolling update for which one batch fits is accepted, never exceeds that memory, and fails no request; larger batches are rejected with what to reduce", async () => {
  await using tight = await openTight(5);
  const { bench } = tight;
  const refused = (deploymentConfig: DeploymentConfig | null, expected: number, advice: RegExp) =>
    assert.rejects(bench.update("tight", "next", { deploymentConfig }), (error: AwsError) => {
      assert.equal(error.code, "ResourceLimitExceeded");
      assert.match(
        error.message,
        new RegExp(`a request delta of ${expected * 128} MiB.* ${(expected - 1) * 128} MiB are missing`),
      );
      assert.match(error.message, advice);
      return true;
    });
  const both = /both fleets at once: with a MaximumBatchSize and a RollbackMaximumBatchSize of a RollingUpdatePolicy/;
  await refused(null, 4, both);
  await refused(blueGreen({ Type: "CANARY", CanarySize: percent(25) }), 4, both);
  const { RollbackMaximumBatchSize: _back, ...policy } = rollingBothWays().RollingUpdatePolicy ?? assert.fail();
  await refused({ RollingUpdatePolicy: policy }, 4, /the update would need 3 instances and 384 MiB less\.$/);
  await refused(rollingBothWays(percent(50)), 2, /transform jobs\.$/);
  const clients = bench.clients("tight");
  await bench.update("tight", "next", { deploymentConfig: rollingBothWays() });
  await bench.settled("tight");
  assert.deepEqual(await bench.status("tight"), ["InService", "next", null]);
  await until("the old instances have ended", () => bench.running().every((name) => name === "new"));
  assert.deepEqual([bench.running().length, tight.most()], [4, 5]);
  assert.deepEqual(Object.fromEntries((await clients.end()).failures), {});
});

test("a rolling update that an alarm rolls back keeps its batch size during the roll-back", async () => {
  const documents = new DocumentMemory();
  await using tight = await openTight(5, documents);
  const { bench } = tight;
  bench.alarms.set("errors", "OK");
  const clients = bench.clients("tight");
  // The alarm changes at the last step, at which one old instance remains.
  whenWritten(documents, ({ state, generations }) => {
    if (state.at === "Updating" && generations[1]?.trafficShare === 1) bench.alarms.set("errors", "ALARM");
  });
  await bench.update("tight", "next", {
    deploymentConfig: {
      ...rollingBothWays(percent(25), 0.3),
      AutoRollbackConfiguration: { Alarms: [{ AlarmName: "errors" }] },
    },
  });
  await bench.settled("tight");
  const reason = "The CloudWatch alarm errors is in the state ALARM.";
  assert.deepEqual(await bench.status("tight"), ["InService", "tight", reason]);
  await until("the new instances have ended", () => bench.running().every((name) => name === "old"));
  assert.deepEqual([bench.running().length, tight.most()], [4, 5]);
  assert.deepEqual(Object.fromEntries((await clients.end()).failures), {});
});

test("a rolling update whose batch does not fit waits for draining instances", async () => {
  await using tight = await openTight(5);
  const { bench } = tight;
  const blocked = Array.from({ length: 4 }, (_, index) => bench.call("tight", `hold ${index}`));
  await until("each instance has one pending request", () => bench.heldCount() === 4);
  await bench.update("tight", "next", { deploymentConfig: rollingBothWays() });
  const stepIndex = async () => {
    const { state } = await bench.hosting.endpoints.find("tight", owner);
    return state.at === "Updating" ? state.change.stepIndex : null;
  };
  await until("an old instance has ended", async () => (await stepIndex()) === 1);
  for (let count = 0; count < 100; count += 1) await bench.call("tight", `${count}`);
  assert.deepEqual([await stepIndex(), bench.running().toSorted()], [1, ["new", "old", "old", "old", "old"]]);
  bench.signal("SIGUSR2");
  assert.deepEqual(
    (await Promise.all(blocked)).map(({ container }) => container),
    ["old", "old", "old", "old"],
  );
  await bench.settled("tight");
  assert.deepEqual(await bench.status("tight"), ["InService", "next", null]);
  await until("the old instances have ended", () => bench.running().every((name) => name === "new"));
  assert.deepEqual([bench.running().length, tight.most()], [4, 5]);
});

for (const [kind, policy] of [
  ["linear", blueGreen({ Type: "LINEAR", LinearStepSize: percent(50) }, 30)],
  ["rolling", rolling(percent(50), 30)],
  [
    "rolling, back in batches",
    { RollingUpdatePolicy: { ...rolling(percent(50), 30).RollingUpdatePolicy, RollbackMaximumBatchSize: percent(50) } },
  ],
] as const) {
  test(`an alarm rolls an update back (${kind}): the old configuration serves, and no request fails`, async () => {
    await using bench = await TrafficFixture.open();
    await bench.deploy("alarmed", [{ name: "old", VariantName: "v", InitialInstanceCount: 2 }]);
    await bench.configure("next", [{ name: "new", VariantName: "v", InitialInstanceCount: 2 }]);
    const deploymentConfig = {
      ...policy,
      AutoRollbackConfiguration: { Alarms: [{ AlarmName: "errors" }] },
    } as DeploymentConfig;
    await assert.rejects(
      bench.update("alarmed", "next", { deploymentConfig }),
      /Could not find CloudWatch alarms that AutoRollbackConfiguration names: errors/,
    );
    bench.alarms.set("errors", "OK");
    const clients = bench.clients("alarmed");
    await bench.update("alarmed", "next", { deploymentConfig });
    await until("half of the requests go to the new fleet", async () => (await bench.shares("alarmed"))[1] === 0.5);
    bench.alarms.set("errors", "ALARM");
    await bench.settled("alarmed");
    const reason = "The CloudWatch alarm errors is in the state ALARM.";
    assert.deepEqual(await bench.status("alarmed"), ["InService", "alarmed", reason]);
    assert.equal((await bench.call("alarmed", "x")).container, "old");
    await until("the new instances have ended", () => bench.running().every((name) => name === "old"));
    assert.equal(bench.running().length, 2);
    assert.deepEqual(Object.fromEntries((await clients.end()).failures), {});
  });
}

for (const [kind, deploymentConfig] of [
  ["blue/green", blueGreen({ Type: "CANARY", CanarySize: percent(50) }, 600)],
  ["rolling", rolling(percent(50), 600)],
] as const) {
  test(`an update is superseded by the next one, which is superseded by a deletion (${kind})`, async () => {
    await using bench = await TrafficFixture.open();
    await bench.deploy("chased", [{ name: "one", VariantName: "v", InitialInstanceCount: 2 }]);
    for (const name of ["two", "three", "four"]) {
      await bench.configure(name, [{ name, VariantName: "v", InitialInstanceCount: 2 }]);
    }
    const clients = bench.clients("chased");
    const isHalf = async () => (await bench.shares("chased")).includes(0.5);
    await bench.update("chased", "two", { deploymentConfig });
    await until("two has its half", isHalf);
    await until("it answers", () => clients.counts.results.has("v two"));
    await bench.update("chased", "three");
    await bench.settled("chased");
    assert.deepEqual(await bench.status("chased"), ["InService", "three", null]);
    await until("three instances have ended", () => bench.running().every((name) => name === "three"));
    await bench.update("chased", "four", { deploymentConfig });
    await until("four has its half", isHalf);
    assert.deepEqual(Object.fromEntries((await clients.end()).failures), {});
    await bench.hosting.endpoints.delete("chased", owner);
    await bench.settled("chased");
    await assert.rejects(bench.status("chased"), /Could not find endpoint/);
    assert.deepEqual(bench.running(), []);
  });
}

test("weights and instance counts change under load, survive an update that retains them, and invalid ones get SageMaker's errors", async () => {
  await using bench = await TrafficFixture.open();
  const variants = [{ name: "a" }, { name: "b", InitialInstanceCount: 2 }];
  await bench.deploy("sized", variants);
  await bench.configure("next", variants);
  const clients = bench.clients("sized");
  const sizes = async () => {
    const { generations } = await bench.hosting.endpoints.find("sized", owner);
    return generations[0].variants.map(({ observed }) => [observed.instanceCount, observed.weight]);
  };
  const resize = async (...requested: Parameters<typeof bench.hosting.endpoints.resize>[1]) => {
    await bench.hosting.endpoints.resize("sized", requested, owner);
    await bench.settled("sized");
  };
  await resize({ variantName: "a", instanceCount: 3 }, { variantName: "b", weight: 0 });
  const grown = [
    [3, 1],
    [2, 0],
  ];
  assert.deepEqual(await sizes(), grown);
  assert.equal((await bench.call("sized", "x")).variant, "a");
  await bench.update("sized", "next", { retained: new Set(["DesiredInstanceCount", "DesiredWeight"] as const) });
  await bench.settled("sized");
  assert.deepEqual(await sizes(), grown);
  await until("the old fleet has ended", () => bench.running().length === 5);
  await resize({ variantName: "a", instanceCount: 1 });
  assert.deepEqual((await sizes())[0], [1, 1]);
  await until("two instances have ended", () => bench.running().length === 3);
  await bench.update("sized", "sized", { retained: new Set(["DesiredWeight"] as const) });
  await bench.settled("sized");
  assert.deepEqual(await sizes(), [
    [1, 1],
    [2, 0],
  ]);
  assert.deepEqual(Object.fromEntries((await clients.end()).failures), {});
  for (const [requested, text] of [
    [[{ variantName: "a" }, { variantName: "a" }], 'The variant name "a" was non-unique within the request.'],
    [
      [{ variantName: "c" }, { variantName: "d" }],
      'The variant name(s) "c", "d" is/are not present within endpoint configuration "sized".',
    ],
    [[{ variantName: "a", instanceCount: 0 }], 'DesiredInstanceCount of variant "a" must be at least 1.'],
    [[{ variantName: "a", weight: 0 }], "At least one production variant needs a weight above zero."],
    [
      [{ variantName: "a", instanceCount: 80 }],
      "The account-level service limit 'ml.m5.large for endpoint usage' is 64 Instances, with current utilization of 3 Instances " +
        "and a request delta of 79 Instances. Please use fewer, or delete what is no longer needed.",
    ],
  ] as const) {
    await assert.rejects(bench.hosting.endpoints.resize("sized", requested, owner), { message: text });
  }
});

test("a stopped endpoint has no process and serves no requests, and a start restores it", async () => {
  await using bench = await TrafficFixture.open();
  await bench.deploy("stopped", [{ name: "a", InitialInstanceCount: 2 }]);
  await bench.hosting.endpoints.stop("stopped", owner);
  assert.equal((await bench.status("stopped"))[0], "OutOfService");
  await until("its instances have ended", () => bench.running().length === 0);
  await assert.rejects(bench.call("stopped", "x"), /Endpoint stopped of account 000000000000 is stopped/);
  await assert.rejects(bench.update("stopped", "stopped"), /it is stopped; start it first/);
  await bench.hosting.endpoints.start("stopped", owner);
  await bench.settled("stopped");
  assert.equal((await bench.call("stopped", "x")).container, "a");
  assert.equal(bench.running().length, 2);
  await assert.rejects(bench.hosting.endpoints.start("stopped", owner), /Cannot start endpoint .*: it is InService/);
});
