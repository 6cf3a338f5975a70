import assert from "node:assert/strict";
import { test } from "node:test";
import { InstalledChart, rendered } from "./installed-chart.ts";
import { localVolume, storageClass } from "./local-volume.ts";

const sum = [2, 4, 6, 8];
test("helm rejects values that the chart does not have, and those of a wrong type", async () => {
  await rendered(["trial=true", "serviceMonitor.enabled=true"]);
  await assert.rejects(rendered(["replica=3"]), /additional properties 'replica' not allowed/i);
  // Several platforms share records and objects, which a volume of one pod cannot have.
  await assert.rejects(rendered(["replicas=2"]), /records/);
  await rendered(["replicas=2", "records=postgres://user@db.example/galatea", "objects=https://s3.example"]);
  await assert.rejects(rendered(["account=12"]), /account/);
  await assert.rejects(rendered(["service.port=none"]), /service\/port|service\.port/);
});

test("a trial installation needs one command: an endpoint is created and invoked through the Service", async (t) => {
  await using chart = await InstalledChart.install("trial", ["trial=true"]);
  const client = await chart.client();
  const start = performance.now();
  await client.deploy("add-sub");
  t.diagnostic(`endpoint in service after ${Math.round(performance.now() - start)} ms`);
  assert.deepEqual(await client.invoke("add-sub"), sum);
});

test("an upgrade keeps the generated key", async () => {
  await using chart = await InstalledChart.install("upgrade", ["trial=true"]);
  const keys = () => chart.kubectl("get", "secret", "galatea-keys", "--output=jsonpath={.data}");
  const before = await keys();
  await chart.upgrade(["trial=true", "region=eu-central-1"]);
  assert.equal(await keys(), before);
  await (await chart.client()).deploy("add-sub");
});

test("a killed pod comes back with its records and objects, and its endpoints return to service", async (t) => {
  await using _volume = await localVolume("galatea-data", 1);
  await using chart = await InstalledChart.install("killed", [
    `persistence.storageClass=${storageClass}`,
    "persistence.size=1Gi",
  ]);
  const client = await chart.client();
  await client.deploy("add-sub");
  const before = await client.records("add-sub");
  const pod = () => chart.kubectl("get", "pod", "galatea-0", "--output=jsonpath={.metadata.uid}");
  const first = await pod();
  const start = performance.now();
  await chart.kubectl("delete", "pod", "galatea-0", "--grace-period=0", "--force");
  await chart.rolledOut();
  assert.notEqual(await pod(), first);
  await client.inService("add-sub");
  assert.deepEqual(await client.invoke("add-sub"), sum);
  t.diagnostic(`invoked again ${Math.round(performance.now() - start)} ms after the kill`);
  assert.deepEqual(await client.records("add-sub"), before);
});
