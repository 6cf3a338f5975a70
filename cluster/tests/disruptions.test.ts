/** Evictions, upgrades and failures under constant load. The clients of the load do not repeat failed requests. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { eventually } from "@galatea/base/core/eventually-fixture.ts";
import { ConstantLoad } from "./constant-load.ts";
import { InstalledChart, kubectl } from "./installed-chart.ts";
import { podsOf, podValues, type InstancePod } from "./instance-pods-fixture.ts";
import { killInPod, processOf } from "./laboratory-fixture.ts";
import { localVolume, storageClass } from "./local-volume.ts";
import type { PlatformClient } from "./platform-client.ts";

const values = [
  ...podValues,
  // Longer than the outage of the API, during which a new endpoint waits for its pod.
  "instances.startSeconds=240",
  `persistence.storageClass=${storageClass}`,
  "persistence.size=1Gi",
];
const outageMs = 60_000;
let chart: InstalledChart;
let volume: AsyncDisposable;
let client: PlatformClient;

before(async () => {
  volume = await localVolume("galatea-disruptions", 3);
  chart = await InstalledChart.install("disruptions", values);
  client = await chart.client(1);
});
after(async () => {
  await chart[Symbol.asyncDispose]();
  await volume[Symbol.asyncDispose]();
});

/** Returns the nodes of the live pods of an endpoint, sorted. */
async function nodesOf(endpoint: string): Promise<readonly string[]> {
  const pods = (await podsOf(chart)).filter(({ metadata }) => metadata.name.startsWith(`${endpoint}-i-`));
  return pods
    .filter(({ metadata }) => metadata.deletionTimestamp === undefined)
    .map(({ spec }) => spec.nodeName ?? "")
    .toSorted();
}

async function loaded(load: ConstantLoad): Promise<void> {
  const { answered } = load;
  await eventually(() => load.answered > answered + 20);
}

test("a node is drained under load: no request fails, with two instances and with one", async (t) => {
  await kubectl("cordon", "node1");
  await client.create("two", { instanceCount: 2 });
  await client.create("one");
  await client.inService("two");
  await client.inService("one");
  await kubectl("uncordon", "node1");
  assert.deepEqual([await nodesOf("two"), await nodesOf("one")], [["node2", "node2"], ["node2"]]);
  await using two = new ConstantLoad("two", [client, client]);
  await using one = new ConstantLoad("one", [client]);
  await Promise.all([loaded(two), loaded(one)]);
  const start = performance.now();
  const selector = "--pod-selector=app.kubernetes.io/name=galatea-instance";
  await kubectl(
    "drain",
    "node2",
    "--delete-emptydir-data",
    "--force",
    "--ignore-daemonsets",
    "--timeout=120s",
    selector,
  );
  t.diagnostic(`node drained after ${Math.round(performance.now() - start)} ms`);
  await Promise.all([loaded(two), loaded(one)]);
  assert.deepEqual(await two.end("drain of a node, 2 instances"), []);
  assert.deepEqual(await one.end("drain of a node, 1 instance"), []);
  await kubectl("uncordon", "node2");
  assert.deepEqual([await nodesOf("two"), await nodesOf("one")], [["node1", "node1"], ["node1"]]);
  await client.deleteEndpoint("two");
  await client.deleteEndpoint("one");
  await eventually(async () => (await podsOf(chart)).length === 0);
  assert.equal(await chart.kubectl("get", "poddisruptionbudgets", "--output=name"), "");
});

test("changed resources of an instance type replace its pods one by one under load: no request fails", async () => {
  await client.create("rolled", { instanceCount: 2 });
  await client.inService("rolled");
  const isLive = ({ metadata }: InstancePod) => metadata.deletionTimestamp === undefined;
  const former = new Set((await podsOf(chart)).map(({ metadata }) => metadata.uid));
  // The upgrade also restarts the platform. The SDK repeats requests until the next one responds.
  const patient = await chart.client(100);
  await using load = new ConstantLoad("rolled", [patient, patient]);
  await loaded(load);
  await chart.upgrade([...values, "instances.types.ml\\.t2\\.medium.cpu=150m"]);
  let liveMax = 0;
  await eventually(async () => {
    const live = (await podsOf(chart)).filter(isLive);
    liveMax = Math.max(liveMax, live.length);
    return live.length === 2 && !live.some(({ metadata }) => former.has(metadata.uid));
  });
  await loaded(load);
  assert.deepEqual(await load.end("changed instance type"), []);
  assert.equal(liveMax, 3);
  await client.deleteEndpoint("rolled");
});

test("the Kubernetes API hangs for 60 s under load: no request fails, and an endpoint created meanwhile gets into service", async (t) => {
  await client.create("outage", { instanceCount: 2 });
  await client.inService("outage");
  await using load = new ConstantLoad("outage", [client, client]);
  await loaded(load);
  process.kill(processOf("apiserver"), "SIGSTOP");
  try {
    await client.create("meanwhile");
    await delay(outageMs);
  } finally {
    process.kill(processOf("apiserver"), "SIGCONT");
  }
  const start = performance.now();
  await client.inService("meanwhile");
  t.diagnostic(`endpoint in service ${Math.round(performance.now() - start)} ms after the outage`);
  assert.deepEqual(await load.end("Kubernetes API hangs for 60 s"), []);
  await client.deleteEndpoint("outage");
  await client.deleteEndpoint("meanwhile");
  await eventually(async () => (await podsOf(chart)).length === 0);
});

test("kill -9 of a model's container and of an agent under load: only requests that it held fail", async () => {
  await client.create("killed", { instanceCount: 2 });
  await client.inService("killed");
  const clients = [client, client, client, client];
  for (const [what, argument] of [
    ["model's container", "--sagemaker-socket"],
    ["agent", "--probe-port"],
  ] as const) {
    const [pod] = await podsOf(chart);
    await using load = new ConstantLoad("killed", clients);
    await loaded(load);
    assert.ok(killInPod(pod?.metadata.uid ?? "", argument) > 0);
    await loaded(load);
    const failures = await load.end(`kill -9 of the ${what}`);
    assert.ok(failures.length <= clients.length, failures.join("\n"));
    await chart.kubectl(
      "wait",
      "pod",
      "--for=condition=Ready",
      "--timeout=60s",
      "--selector=app.kubernetes.io/name=galatea-instance",
    );
  }
  await client.deleteEndpoint("killed");
});

test("kill -9 of the platform under load: the SDK's repetitions succeed, and the instances keep their pods", async () => {
  await client.create("adopted", { instanceCount: 2 });
  await client.inService("adopted");
  const uids = async () => (await podsOf(chart)).map(({ metadata }) => metadata.uid).toSorted();
  const former = await uids();
  const platform = await chart.kubectl("get", "pod", "galatea-0", "--output=jsonpath={.metadata.uid}");
  const patient = await chart.client(100);
  await using load = new ConstantLoad("adopted", [patient, patient]);
  await loaded(load);
  assert.ok(killInPod(platform, "--pods=") > 0);
  await loaded(load);
  assert.deepEqual(await load.end("kill -9 of the platform"), []);
  assert.deepEqual(await uids(), former);
  await client.deleteEndpoint("adopted");
});
