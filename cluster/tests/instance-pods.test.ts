import assert from "node:assert/strict";
import { test } from "node:test";
import { eventually } from "@galatea/base/core/eventually-fixture.ts";
import { InstalledChart, rendered } from "./installed-chart.ts";
import { onlyPodOf, onNode2, podsOf, podValues, type InstancePod } from "./instance-pods-fixture.ts";
import { localVolume, storageClass } from "./local-volume.ts";

const sum = [2, 4, 6, 8];
const values = [...podValues, onNode2];

/** Returns the process id and start time of the model's container in a pod. */
async function containerProcess(chart: InstalledChart, pod: InstancePod): Promise<string> {
  const script =
    'for p in /proc/[0-9]*; do grep -qz "^--sagemaker-socket" $p/cmdline && cut -d " " -f 1,22 $p/stat; done';
  return await chart.kubectl("exec", pod.metadata.name, "--", "sh", "-c", `${script} 2>/dev/null; true`);
}

test("the chart gives the platform a Role of its namespace, with instances in pods only", async () => {
  assert.doesNotMatch(await rendered(["trial=true"]), /kind: Role/);
  assert.match(await rendered(["trial=true", "instances.inPods=true"]), /kind: Role\n/);
  await assert.rejects(rendered(["instances.types.ml\\.t2\\.medium.cpu=many"]), /cpu/);
});

test("an endpoint's instance runs in a pod on another node, a killed pod is replaced, and a deletion leaves no pod", async (t) => {
  await using chart = await InstalledChart.install("pods", ["trial=true", ...values]);
  const client = await chart.client();
  const start = performance.now();
  await client.deploy("add-sub");
  t.diagnostic(`endpoint in service after ${Math.round(performance.now() - start)} ms`);
  assert.deepEqual(await client.invoke("add-sub"), sum);
  const pod = await onlyPodOf(chart);
  assert.equal(pod.spec.nodeName, "node2");
  const killed = performance.now();
  await chart.kubectl("delete", "pod", pod.metadata.name, "--grace-period=0", "--force");
  await eventually(async () => (await client.invoke("add-sub").catch(() => null)) !== null);
  t.diagnostic(`invoked again ${Math.round(performance.now() - killed)} ms after the kill of the pod`);
  assert.notEqual((await onlyPodOf(chart)).metadata.uid, pod.metadata.uid);
  await client.deleteEndpoint("add-sub");
  await eventually(async () => (await podsOf(chart)).length === 0);
  const secrets = await chart.kubectl("get", "secrets", "--selector=galatea/platform=galatea", "--output=name");
  assert.equal(secrets, "");
});

test("an endpoint of an instance type that no node has fails with the scheduler's reason, and leaves no pod", async () => {
  await using chart = await InstalledChart.install("too-large", ["trial=true", ...values, "instances.startSeconds=5"]);
  const client = await chart.client();
  await client.create("large", { instanceType: "ml.m5.24xlarge" });
  assert.match(
    await client.failureReason("large"),
    /InsufficientInstanceCapacity error: no node of the cluster takes the pod: 0\/2 nodes are available: .*Insufficient memory/,
  );
  await eventually(async () => (await podsOf(chart)).length === 0);
});

test("a killed platform adopts its instances: their pods and processes stay, and answer at once", async (t) => {
  await using _volume = await localVolume("galatea-pods", 2);
  await using chart = await InstalledChart.install("adopted", [
    `persistence.storageClass=${storageClass}`,
    "persistence.size=1Gi",
    ...values,
  ]);
  const client = await chart.client();
  await client.deploy("add-sub");
  const pod = await onlyPodOf(chart);
  const before = await containerProcess(chart, pod);
  assert.match(before, /^\d+ \d+\n$/);
  const start = performance.now();
  await chart.kubectl("delete", "pod", "galatea-0", "--grace-period=0", "--force");
  await chart.rolledOut();
  assert.deepEqual(await client.invoke("add-sub"), sum);
  t.diagnostic(`invoked again ${Math.round(performance.now() - start)} ms after the kill of the platform`);
  assert.equal((await onlyPodOf(chart)).metadata.uid, pod.metadata.uid);
  assert.equal(await containerProcess(chart, pod), before);
  await client.deleteEndpoint("add-sub");
  await eventually(async () => (await podsOf(chart)).length === 0);
});
