import assert from "node:assert/strict";
import type { InstalledChart } from "./installed-chart.ts";

/** Values of the chart: the platform runs on node1, and an instance of type ml.t2.medium fits on either node. */
export const podValues = [
  "instances.inPods=true",
  "instances.startSeconds=60",
  "nodeSelector.kubernetes\\.io/hostname=node1",
  "instances.types.ml\\.t2\\.medium.cpu=200m",
  "instances.types.ml\\.t2\\.medium.memory=1Gi",
];

/** A value of the chart that places instances on node2. */
export const onNode2 = "instances.types.ml\\.t2\\.medium.nodeSelector.kubernetes\\.io/hostname=node2";

export interface InstancePod {
  readonly metadata: { readonly name: string; readonly uid: string; readonly deletionTimestamp?: string };
  readonly spec: { readonly nodeName?: string };
}

/** Returns the pods of instances, including pods that are being deleted. */
export async function podsOf(chart: InstalledChart): Promise<readonly InstancePod[]> {
  const selector = "--selector=app.kubernetes.io/name=galatea-instance";
  const { items } = JSON.parse(await chart.kubectl("get", "pods", selector, "--output=json")) as {
    readonly items: readonly InstancePod[];
  };
  return items;
}

/** Returns the only instance pod that is not being deleted. Fails if there is not exactly one. */
export async function onlyPodOf(chart: InstalledChart): Promise<InstancePod> {
  const [pod, ...more] = (await podsOf(chart)).filter(({ metadata }) => metadata.deletionTimestamp === undefined);
  assert.ok(pod !== undefined);
  assert.deepEqual(more, []);
  return pod;
}
