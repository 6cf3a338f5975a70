import assert from "node:assert/strict";
import { PassThrough } from "node:stream";
import { text } from "node:stream/consumers";
import { test, type TestContext } from "node:test";
import { silentLogger, systemClock } from "@galatea/base";
import { eventually, testTimeoutMs } from "@galatea/base/core/eventually-fixture.ts";
import { InstanceFailure, type AgentInstance, type AgentInstanceSpec } from "../src/instance-agent/index.ts";
import { PlatformSuperseded } from "../src/instance-agent-http/index.ts";
import type { InstanceOwner } from "../src/instances/index.ts";
import {
  clusterNode,
  fencedCluster,
  KubernetesHost,
  type ClusterApi,
  type PodSettings,
} from "../src/kubernetes-host/index.ts";
import type { Pod } from "../src/kubernetes-host/pod.ts";
import { FakeCluster, quotaExceeded } from "./fake-cluster-fixture.ts";
import { openLocalAgent } from "./instance-agents-fixture.ts";

const node = clusterNode({}, 2 ** 30);
const owner: InstanceOwner = { endpointName: "e", fleetKey: "1 v", ordinal: 0 };
const signal = () => AbortSignal.timeout(testTimeoutMs);
const keys = { environment: {}, record: () => Promise.resolve(), [Symbol.asyncDispose]: () => Promise.resolve() };

const settings: PodSettings = {
  namespace: "test",
  platform: "galatea",
  image: "galatea:test",
  pullPolicy: "Never",
  pullSecrets: [],
  agentArguments: ["agent"],
  environment: [],
  owner: null,
  types: {},
  priorityClass: null,
  graceSeconds: 90,
};

async function openHost(
  api: ClusterApi,
  podStartMsMax = testTimeoutMs,
  image = settings.image,
): Promise<KubernetesHost> {
  return await KubernetesHost.open({
    api,
    settings: { ...settings, image },
    node: node.id,
    podStartMsMax,
    epoch: null,
    issueKeys: () => keys,
    clock: systemClock,
    logger: silentLogger,
  });
}

async function specFor(behaviour: "serve" | "fail", owned: InstanceOwner | null = owner): Promise<AgentInstanceSpec> {
  await using local = await openLocalAgent();
  return { ...local.specFor(behaviour), owner: owned };
}

/** Opens a client of an instance, whose pod is deleted at the end of the test. */
function opened(t: TestContext, host: KubernetesHost, spec: AgentInstanceSpec): AgentInstance {
  const instance = host.instance(spec, () => {});
  t.after(() => instance.delete());
  return instance;
}

async function started(t: TestContext, host: KubernetesHost, spec: AgentInstanceSpec): Promise<AgentInstance> {
  const instance = opened(t, host, spec);
  assert.equal(await instance.put("delete"), false);
  await instance.view.started(signal());
  return instance;
}

async function echoed(instance: AgentInstance): Promise<string> {
  const [container] = instance.containers;
  assert.ok(container !== undefined);
  const request = { headers: {}, body: Buffer.from("question"), isStreamed: false, mayGoElsewhere: false };
  return await text((await container.invoke({ ...request, signal: signal() })).body);
}

test("an instance gets a pod with a Secret of its own, and its deletion leaves neither", async (t) => {
  await using cluster = new FakeCluster();
  await using host = await openHost(cluster);
  await host.resume([]);
  const instance = await started(t, host, await specFor("serve"));
  assert.equal(await echoed(instance), "question");
  const names = cluster.pods.map(({ metadata }) => metadata.name);
  assert.equal(names.length, 1);
  assert.deepEqual(cluster.secretNames, ["galatea-agents", ...names]);
  assert.equal(await instance.delete(), true);
  await eventually(() => cluster.pods.length === 0);
  assert.deepEqual(cluster.secretNames, ["galatea-agents"]);
});

test("the next run of the platform adopts a pod with its running instance, and deletes pods that no record needs", async (t) => {
  await using cluster = new FakeCluster();
  const spec = await specFor("serve");
  {
    await using host = await openHost(cluster);
    await host.resume([]);
    const instance = await started(t, host, spec);
    await started(t, host, await specFor("serve", { ...owner, ordinal: 1 }));
    await instance.shutDown();
  }
  const kept = cluster.pods.find(({ metadata }) => metadata.labels?.["galatea/instance"] === spec.id);
  await using host = await openHost(cluster);
  assert.deepEqual(await host.resume([owner]), new Set([spec.id]));
  await eventually(() => cluster.pods.length === 1);
  assert.equal(cluster.pods[0]?.metadata.name, kept?.metadata.name);
  assert.deepEqual(host.claim(owner), { id: spec.id, node: node.id });
  assert.equal(host.claim(owner), null);
  const lines: string[] = [];
  const instance = host.instance(spec, (event) => void (event.kind === "line" && lines.push(event.text)));
  assert.equal(await instance.put("retry"), true);
  await instance.view.started(signal());
  assert.equal(await echoed(instance), "question");
  assert.equal(cluster.pods.length, 1);
  assert.deepEqual(lines, [], "a container that starts again prints");
  await instance.delete();
});

test("a platform that has lost its records to another one neither creates nor deletes pods", async (t) => {
  await using cluster = new FakeCluster();
  let isLeader = true;
  await using host = await openHost(fencedCluster(cluster, () => Promise.resolve(isLeader)));
  await host.resume([]);
  const instance = await started(t, host, await specFor("serve"));
  const starting = opened(t, host, await specFor("serve", { ...owner, ordinal: 1 }));
  isLeader = false;
  await starting.put("delete");
  await assert.rejects(host.resume([]), PlatformSuperseded);
  assert.equal(await instance.delete(), true);
  await starting.delete();
  assert.equal(cluster.pods.length, 1);
  assert.equal(cluster.secretNames.length, 2);
  isLeader = true;
});

test("a pod of another spec is replaced", async (t) => {
  await using cluster = new FakeCluster();
  const spec = await specFor("serve");
  await using host = await openHost(cluster);
  await host.resume([]);
  const before = await started(t, host, spec);
  await before.shutDown();
  const [first] = cluster.pods;
  const changed = { ...spec, budget: { ...spec.budget, vcpuCount: 2 } };
  const instance = opened(t, host, changed);
  await instance.put("retry");
  await instance.view.started(signal());
  await eventually(() => cluster.pods.length === 1 && cluster.pods[0]?.metadata.name !== first?.metadata.name);
  await instance.delete();
});

test("outdated pods of a fleet are replaced one by one, and each serves until its successor does", async (t) => {
  await using cluster = new FakeCluster();
  const owners = [0, 1, 2].map((ordinal) => ({ ...owner, ordinal }));
  const specs = await Promise.all(owners.map((each) => specFor("serve", each)));
  {
    await using host = await openHost(cluster);
    await host.resume([]);
    const before = await Promise.all(specs.map((spec) => started(t, host, spec)));
    await Promise.all(before.map((instance) => instance.shutDown()));
  }
  await using host = await openHost(cluster, testTimeoutMs, "galatea:next");
  assert.equal((await host.resume(owners)).size, 3);
  const instances = specs.map((spec) => opened(t, host, spec));
  assert.deepEqual(await Promise.all(instances.map((instance) => instance.put("retry"))), [true, true, true]);
  await Promise.all(instances.map((instance) => instance.view.started(signal())));
  const isNext = ({ spec }: Pod) =>
    (spec as { containers?: { image: string }[] }).containers?.[0]?.image === "galatea:next";
  let [requestCount, isReplaced] = [0, false];
  while (!isReplaced) {
    isReplaced = cluster.pods.length === 3 && cluster.pods.every(isNext);
    for (const instance of instances) assert.equal(await echoed(instance), "question");
    requestCount += instances.length;
  }
  t.diagnostic(`${requestCount} requests during the replacement`);
  assert.equal(cluster.livePodsMax, 4);
  await eventually(() => cluster.secretNames.length === 4);
});

test("a fleet has a disruption budget that leaves all of its instances but one, until it has none", async (t) => {
  await using cluster = new FakeCluster();
  const instances: AgentInstance[] = [];
  {
    await using host = await openHost(cluster);
    await host.resume([]);
    for (const ordinal of [0, 1]) instances.push(await started(t, host, await specFor("serve", { ...owner, ordinal })));
    await started(t, host, await specFor("serve", null));
    await eventually(() => cluster.minAvailable.join() === "1");
    cluster.failure = new Error("connect ECONNREFUSED");
    const deleted = instances[1]?.delete();
    await eventually(() => cluster.callCount > 0);
    cluster.failure = null;
    await deleted;
    await eventually(() => cluster.minAvailable.join() === "0");
    await instances[0]?.shutDown();
  }
  await using host = await openHost(cluster);
  await host.resume([]);
  await eventually(() => cluster.minAvailable.length === 0);
});

test("a pod that vanishes is replaced, and requests get the instance in the new one", async (t) => {
  await using cluster = new FakeCluster();
  await using host = await openHost(cluster);
  await host.resume([]);
  const instance = await started(t, host, await specFor("serve"));
  const [first] = cluster.pods;
  assert.ok(first !== undefined);
  await cluster.remove("Pod", first.metadata.name);
  await eventually(() => cluster.pods.length === 1);
  await instance.containers[0]?.view.ready(signal());
  await eventually(() => instance.view.isInService);
  assert.equal(await echoed(instance), "question");
  assert.deepEqual(cluster.secretNames, ["galatea-agents", cluster.pods[0]?.metadata.name]);
  await instance.delete();
  await eventually(() => cluster.pods.length === 0);
});

test("a pod that is evicted is replaced, and its request in flight ends there", async (t) => {
  await using cluster = new FakeCluster();
  await using host = await openHost(cluster);
  await host.resume([]);
  const instance = await started(t, host, await specFor("serve"));
  const [container] = instance.containers;
  const [first] = cluster.pods;
  assert.ok(container !== undefined && first !== undefined);
  const body = new PassThrough();
  body.write("the first half, ");
  const sent = { headers: {}, body, isStreamed: true, mayGoElsewhere: false, signal: signal() };
  const reply = await container.invoke(sent);
  await cluster.delete("Pod", first.metadata.name);
  await eventually(() => cluster.pods.length === 2 && cluster.pods.every(({ status }) => status?.podIP !== undefined));
  await eventually(() => instance.view.isInService && !container.view.health.isUnhealthy);
  assert.equal(await echoed(instance), "question");
  assert.equal(cluster.pods.length, 2);
  body.end("the second half");
  assert.equal(await text(reply.body), "the first half, the second half");
  await eventually(() => cluster.pods.length === 1);
  assert.notEqual(cluster.pods[0]?.metadata.name, first.metadata.name);
});

test("requests are served while the Kubernetes API does not respond, and a deletion waits for it", async (t) => {
  await using cluster = new FakeCluster();
  await using host = await openHost(cluster);
  await host.resume([]);
  const instance = await started(t, host, await specFor("serve"));
  cluster.failure = new Error("connect ECONNREFUSED");
  assert.equal(await echoed(instance), "question");
  const deleted = instance.delete();
  await eventually(() => cluster.callCount > 0);
  assert.equal(cluster.pods.length, 1);
  cluster.failure = null;
  assert.equal(await deleted, true);
  await eventually(() => cluster.pods.length === 0);
});

test("an instance whose pod no node takes, or a quota refuses, fails with the reason and leaves no pod", async (t) => {
  await using cluster = new FakeCluster();
  await using host = await openHost(cluster, 200);
  await host.resume([]);
  const message = "0/2 nodes are available: 2 Insufficient memory.";
  cluster.status = {
    phase: "Pending",
    conditions: [{ type: "PodScheduled", status: "False", reason: "Unschedulable", message }],
  };
  const waiting = opened(t, host, await specFor("serve"));
  await waiting.put("delete");
  await assert.rejects(
    waiting.view.started(signal()),
    /InsufficientInstanceCapacity error: no node.*2 Insufficient memory\. Use/,
  );
  await waiting.delete();
  await eventually(() => cluster.pods.length === 0);
  const refused = opened(t, host, await specFor("serve"));
  cluster.failure = quotaExceeded;
  await refused.put("delete");
  await assert.rejects(refused.view.started(signal()), /InsufficientInstanceCapacity error: the quota.*used: pods=1/);
  cluster.failure = null;
  await refused.delete();
});

test("an instance whose pod does not start, without a reason in the pod's status, fails with the newest event", async (t) => {
  await using cluster = new FakeCluster();
  await using host = await openHost(cluster, 200);
  await host.resume([]);
  cluster.status = { phase: "Pending", conditions: [{ type: "PodScheduled", status: "True" }] };
  cluster.podWarnings = [{ reason: "FailedCreatePodSandBox", message: "the network plugin failed" }];
  const instance = opened(t, host, await specFor("serve"));
  await instance.put("delete");
  await assert.rejects(
    instance.view.started(signal()),
    /The pod e-i-\S+ was not ready after 0\.2 s\. The node cannot create the pod's sandbox: the network plugin failed\. Ask/,
  );
});

test("an instance whose container fails at its first start ends with the container's failure", async (t) => {
  await using cluster = new FakeCluster();
  await using host = await openHost(cluster);
  await host.resume([]);
  const instance = opened(t, host, await specFor("fail"));
  await instance.put("delete");
  await assert.rejects(instance.view.started(signal()), InstanceFailure);
  await instance.delete();
  await eventually(() => cluster.pods.length === 0);
});
