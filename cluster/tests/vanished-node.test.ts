/** Stops node2. This file must be the last one by name, because the laboratory has only one node afterwards. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { eventually } from "@galatea/base/core/eventually-fixture.ts";
import { InstalledChart } from "./installed-chart.ts";
import { onlyPodOf, podValues } from "./instance-pods-fixture.ts";
import { processOf } from "./laboratory-fixture.ts";

test("an instance on a node that vanishes starts again in a pod on another node", async (t) => {
  await using chart = await InstalledChart.install("vanished", ["trial=true", ...podValues]);
  const client = await chart.client();
  await client.deploy("add-sub");
  const pod = await onlyPodOf(chart);
  assert.equal(pod.spec.nodeName, "node2", "the node without the platform has more free capacity");
  const start = performance.now();
  process.kill(processOf("node2"), "SIGKILL");
  await eventually(async () => (await client.invoke("add-sub").catch(() => null)) !== null);
  t.diagnostic(`invoked again ${Math.round(performance.now() - start)} ms after the end of the node`);
  assert.deepEqual(await client.invoke("add-sub"), [2, 4, 6, 8]);
  assert.equal((await onlyPodOf(chart)).spec.nodeName, "node1");
  // Kubernetes keeps the pod of a lost node until the kubelet reports again, so the test deletes it.
  await chart.kubectl("delete", "pod", pod.metadata.name, "--grace-period=0", "--force");
});
