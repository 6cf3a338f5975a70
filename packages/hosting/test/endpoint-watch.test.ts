import assert from "node:assert/strict";
import { test } from "node:test";
import { DocumentMemory } from "../src/records/contracts/index.ts";
import { owner } from "./hosting-fixture.ts";
import { TrafficFixture } from "./traffic-fixture.ts";
import { testTimeoutMs } from "@galatea/base/core/eventually-fixture.ts";

const signal = new AbortController().signal;
const long = { waitMsMax: testTimeoutMs, signal };
const atOnce = { waitMsMax: 0, signal };

async function statuses(bench: TrafficFixture, after = 0) {
  const found = await bench.hosting.watch.stateChanges(after, 100, atOnce);
  return found.map(({ change }) => [change.endpointName, change.before, change.status, change.reason]);
}

test("state changes are kept in order, also after a restart and after the endpoint's deletion", async () => {
  const documents = new DocumentMemory();
  const expected: unknown[] = [
    ["e", null, "Creating", null],
    ["e", "Creating", "InService", null],
    ["e", "InService", "OutOfService", null],
  ];
  {
    await using bench = await TrafficFixture.open(documents);
    await bench.deploy("e", [{ name: "v" }]);
    await bench.hosting.endpoints.stop("e", owner);
    assert.deepEqual(await statuses(bench), expected);
    await assert.rejects(bench.call("e", "x"), {
      code: "ValidationError",
      message: `Endpoint e of account ${owner.accountId} is stopped. \`galatea endpoint start e\` starts it again.`,
    });
  }
  await using bench = await TrafficFixture.open(documents);
  await bench.hosting.resume();
  assert.deepEqual(await statuses(bench), expected);
  assert.deepEqual(await bench.status("e"), ["OutOfService", "e", null]);
  const known = (await bench.hosting.watch.stateChanges(0, 100, atOnce)).at(-1)?.number ?? 0;
  const next = bench.hosting.watch.stateChanges(known, 100, long);
  await bench.hosting.endpoints.start("e", owner);
  assert.deepEqual(
    (await next).map(({ change }) => change.status),
    ["Creating"],
  );
  await bench.settled("e");
  assert.equal((await bench.call("e", "x")).variant, "v");
  await bench.hosting.endpoints.delete("e", owner);
  await bench.settled("e");
  assert.deepEqual(await statuses(bench, known), [
    ["e", "OutOfService", "Creating", null],
    ["e", "Creating", "InService", null],
    ["e", "InService", "Deleting", null],
    ["e", "Deleting", "Deleted", null],
  ]);
});

test("a failed endpoint reports the reason, and changes that were not recorded are not reported", async () => {
  const documents = new DocumentMemory();
  await using bench = await TrafficFixture.open(documents);
  await bench.deploy("broken", [{ name: "v", isBroken: true }]);
  const [, failed] = await statuses(bench);
  assert.deepEqual(failed?.slice(0, 3), ["broken", "Creating", "Failed"]);
  assert.ok(String(failed?.[3]).length > 20, String(failed?.[3]));
  await assert.rejects(
    bench.hosting.endpoints.create({ name: "broken", configName: "broken", owner, tags: [], deploymentConfig: null }),
  );
  assert.equal((await statuses(bench)).length, 2);
});

test("waiting for an endpoint continues through the steps of an update until the state is final", async () => {
  await using bench = await TrafficFixture.open();
  await bench.deploy("e", [{ name: "v" }]);
  await bench.configure("f", [{ name: "w" }]);
  const policy = { Type: "ALL_AT_ONCE", WaitIntervalInSeconds: 2 } as const;
  await bench.update("e", "f", {
    deploymentConfig: { BlueGreenUpdatePolicy: { TrafficRoutingConfiguration: policy } },
  });
  await bench.hosting.waitUntilStable("e", long);
  assert.deepEqual(await bench.status("e"), ["InService", "f", null]);
});
