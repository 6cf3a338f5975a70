import assert from "node:assert/strict";
import { test } from "node:test";
import { DocumentMemory, MemoryDocuments } from "../../records/contracts/index.ts";
import type { Asker } from "../../hosting/index.ts";
import { owner } from "./hosting-fixture.ts";
import { TrafficBench, until } from "./traffic-fixture.ts";
import { hangMs } from "../../base/eventually-fixture.ts";

const signal = new AbortController().signal;
const long = { waitMsMax: 60_000, signal };
const asker = (name: string, more: Partial<Asker> = {}): Asker => {
  const connection = { destroyed: false };
  return {
    name,
    connection,
    isWaiter: false,
    printsLogs: false,
    awakeMsMax: 60_000,
    quietMsMax: 60_000,
    stayAwake: { blanks: null, interims: null },
    signal,
    ...more,
  };
};
/** Longer than a test may last. */
const neverMs = 2 * hangMs;
const atOnce = { waitMsMax: 0, signal };

async function statuses(bench: TrafficBench, after = 0) {
  const found = await bench.hosting.watch.stateChanges(after, 100, atOnce);
  return found.map(({ change }) => [change.endpointName, change.before, change.status, change.reason]);
}

test("state changes are kept in their order, over a restart, until the endpoint is gone and after it", async () => {
  const documents = new DocumentMemory();
  const expected: unknown[] = [
    ["e", null, "Creating", null],
    ["e", "Creating", "InService", null],
    ["e", "InService", "OutOfService", null],
  ];
  {
    await using bench = await TrafficBench.open(documents);
    await bench.deploy("e", [{ name: "v" }]);
    await bench.hosting.endpoints.stop("e", owner);
    assert.deepEqual(await statuses(bench), expected);
    await assert.rejects(bench.ask("e", "x"), {
      code: "ValidationError",
      message: `Endpoint e of account ${owner.accountId} is stopped. \`galatea endpoint start e\` has it come up again.`,
    });
  }
  await using bench = await TrafficBench.open(documents);
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
  assert.equal((await bench.ask("e", "x")).variant, "v");
  await bench.hosting.endpoints.delete("e", owner);
  await bench.settled("e");
  assert.deepEqual(await statuses(bench, known), [
    ["e", "OutOfService", "Creating", null],
    ["e", "Creating", "InService", null],
    ["e", "InService", "Deleting", null],
    ["e", "Deleting", "Deleted", null],
  ]);
});

test("an endpoint that fails tells why, and what was not recorded is not told", async () => {
  const documents = new DocumentMemory();
  await using bench = await TrafficBench.open(documents);
  await bench.deploy("broken", [{ name: "v", isBroken: true }]);
  const [, failed] = await statuses(bench);
  assert.deepEqual(failed?.slice(0, 3), ["broken", "Creating", "Failed"]);
  assert.ok(String(failed?.[3]).length > 20, String(failed?.[3]));
  await assert.rejects(
    bench.hosting.endpoints.create({ name: "broken", configName: "broken", owner, tags: [], deploymentConfig: null }),
  );
  assert.equal((await statuses(bench)).length, 2);
});

test("a first question is held until the endpoint has settled; who asks again at once is answered at once", async () => {
  await using bench = await TrafficBench.open();
  const { hosting } = bench;
  await bench.configure("e", [{ name: "v" }]);
  await hosting.endpoints.create({ name: "e", configName: "e", owner, tags: [], deploymentConfig: null });
  await hosting.watch.news("e", asker("waiter"));
  assert.equal((await bench.status("e"))[0], "InService");
  // While it bakes nothing is going to come of it for a while: that is told, to whoever asks for the first time, too.
  await bench.configure("f", [{ name: "w" }]);
  const WaitIntervalInSeconds = 600;
  const policy = { Type: "ALL_AT_ONCE", WaitIntervalInSeconds } as const;
  const deploymentConfig = { BlueGreenUpdatePolicy: { TrafficRoutingConfiguration: policy } };
  await bench.update("e", "f", { deploymentConfig });
  await hosting.watch.news("e", asker("waiter"));
  const [at] = await bench.status("e");
  assert.equal(at, "Updating");
  assert.deepEqual(await bench.shares("e"), [0, 1]);
  // The watcher would be held for longer than a test lasts.
  await hosting.watch.news("e", { ...asker("watcher"), awakeMsMax: neverMs, quietMsMax: neverMs });
});

test("who asks while a slow start is under way is held for no longer than they paused", async () => {
  await using bench = await TrafficBench.open();
  const { hosting } = bench;
  await bench.deploy("e", [{ name: "v" }]);
  bench.signal("SIGSTOP");
  await hosting.endpoints.delete("e", owner);
  const watcher = { ...asker("watcher"), awakeMsMax: neverMs, quietMsMax: neverMs };
  await hosting.watch.news("e", { ...watcher, quietMsMax: 300 });
  // The second call returns although it could be held for longer than a test lasts.
  await hosting.watch.news("e", watcher);
  bench.signal("SIGCONT");
  await bench.settled("e");
});

test("a record that is on disk before this process has heard of it is waited for, and not read over and over", async () => {
  const documents = new DocumentMemory();
  await using bench = await TrafficBench.open(documents);
  await bench.deploy("e", [{ name: "v" }]);
  // The last write that follows from a deployment: what its model takes of memory.
  const records = new MemoryDocuments(documents);
  await until("nothing more is written", async () => (await records.get("model-memory", "e-v")) !== null);
  const [id, kept] = [...documents.held].find(([, { kind }]) => kind === "endpoint") ?? assert.fail();
  const record = JSON.parse(kept.body) as { state: { at: string } };
  const body = JSON.stringify({ ...record, state: { ...record.state, at: "Creating" } });
  documents.held.set(id, { ...kept, version: kept.version + 1, body });
  let readCount = 0;
  const get = documents.held.get.bind(documents.held);
  documents.held.get = (asked) => {
    // Reading resolves in the same turn of the event loop: nothing else would end it.
    if (asked === id && (readCount += 1) > 1000) throw new Error("read over and over");
    return get(asked);
  };
  await bench.hosting.watch.news("e", asker("waiter", { quietMsMax: 20 }));
  // Once, and again for what the process may hear meanwhile.
  assert.ok(readCount >= 1 && readCount < 10, `read ${readCount} times`);
  documents.held.set(id, kept);
});

test("a waiter's question is held beyond the steps of an update, until the state stays", async () => {
  await using bench = await TrafficBench.open();
  const { hosting } = bench;
  await bench.deploy("e", [{ name: "v" }]);
  await bench.configure("f", [{ name: "w" }]);
  const policy = { Type: "ALL_AT_ONCE", WaitIntervalInSeconds: 2 } as const;
  await bench.update("e", "f", {
    deploymentConfig: { BlueGreenUpdatePolicy: { TrafficRoutingConfiguration: policy } },
  });
  await hosting.watch.news("e", asker("waiter", { isWaiter: true }));
  assert.deepEqual(await bench.status("e"), ["InService", "f", null]);
});

test("who is kept awake by blanks is told of a deletion when it begins, because its answer can be no error", async () => {
  await using bench = await TrafficBench.open();
  const { hosting } = bench;
  await bench.deploy("e", [{ name: "v" }]);
  bench.signal("SIGSTOP");
  await bench.configure("f", [{ name: "w" }]);
  await bench.update("e", "f", {});
  let awakeCount = 0;
  const awake = () => {
    awakeCount += 1;
    return { [Symbol.dispose]: () => void (awakeCount -= 1) };
  };
  const stayAwake = { blanks: awake, interims: null };
  const held = hosting.watch.news("e", asker("waiter", { isWaiter: true, stayAwake }));
  assert.equal(awakeCount, 1);
  await hosting.endpoints.delete("e", owner);
  await held;
  assert.deepEqual([awakeCount, (await bench.status("e"))[0]], [0, "Deleting"]);
  const later = hosting.watch.news("e", asker("waiter", { isWaiter: true, stayAwake }));
  assert.equal(awakeCount, 0, "the answer to who asks of a deletion may be an error");
  const interims = { blanks: null, interims: awake };
  const kept = hosting.watch.news("e", asker("other waiter", { isWaiter: true, stayAwake: interims }));
  assert.equal(awakeCount, 1, "interim responses may come before an error");
  bench.signal("SIGCONT");
  await Promise.all([later, kept]);
  assert.equal(awakeCount, 0);
  await assert.rejects(bench.status("e"));
});
