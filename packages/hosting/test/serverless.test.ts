/**
 * Serverless variants over real processes: the first request starts the instance, and it is stopped when it is idle.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { text } from "node:stream/consumers";
import { nodeWith } from "../src/nodes/node-fixture.ts";
import { AwsError, ByteBudget, ByteLease, systemClock } from "@galatea/base";
import { DocumentMemory } from "../src/records/contracts/index.ts";
import { TrafficFixture, until, type PlannedVariant } from "./traffic-fixture.ts";
import { owner } from "./hosting-fixture.ts";

function serverless(name: string, max: number, provisioned = 0): PlannedVariant {
  const kept = provisioned === 0 ? {} : { ProvisionedConcurrency: provisioned };
  return {
    name,
    VariantName: "v",
    InitialInstanceCount: provisioned > 0 ? 1 : 0,
    InstanceType: "serverless",
    ServerlessConfig: { MemorySizeInMB: 1024, MaxConcurrency: max, ...kept },
  };
}

const open = (more: Parameters<typeof TrafficFixture.open>[2] = {}, documents = new DocumentMemory()) =>
  TrafficFixture.open(documents, null, more);

async function refused(call: Promise<unknown>): Promise<AwsError> {
  const error = await call.then(
    () => null,
    (thrown: unknown) => thrown,
  );
  assert.ok(error instanceof AwsError, String(error));
  return error;
}

/** Signals the container repeatedly to send its pending responses, until `pending` has settled. */
async function released(bench: TrafficFixture, pending: Promise<unknown>): Promise<void> {
  const reporting = setInterval(() => bench.signal("SIGUSR2"), 20);
  await pending.finally(() => clearInterval(reporting));
}

const inService = (bench: TrafficFixture) =>
  until("an instance is in service", () => bench.hosting.statistics().instancesInServiceCount === 1);

test("the first request starts the instance and waits for it, concurrent ones share it, and it ends when idle", async () => {
  await using bench = await open({ instances: { idleMsMax: 200 } });
  await bench.deploy("asleep", [serverless("one", 5)]);
  assert.deepEqual(await bench.status("asleep"), ["InService", "asleep", null]);
  assert.deepEqual(bench.running(), []);
  const responses = await Promise.all(Array.from({ length: 5 }, () => bench.call("asleep", "x")));
  assert.equal(new Set(responses.map(({ pid }) => pid)).size, 1);
  const name = "asleep v";
  assert.equal(bench.sums.get(`${name} Invocations`), 5);
  const setupUs = bench.sums.get(`${name} ModelSetupTime`) ?? 0;
  assert.ok(setupUs > 1000, String(setupUs));
  assert.ok((bench.sums.get(`${name} OverheadLatency`) ?? 0) > setupUs, "the start is part of the overhead");
  await until("the instance has ended", () => bench.running().length === 0);
  const again = await bench.call("asleep", "x");
  assert.notEqual(again.pid, responses[0]?.pid);
});

test("concurrent requests over MaxConcurrency are throttled, while the instance starts and while it runs", async () => {
  await using bench = await open();
  await bench.deploy("busy", [serverless("one", 2)]);
  const pending = [bench.call("busy", "hold"), bench.call("busy", "hold")];
  const early = await refused(bench.call("busy", "x"));
  assert.deepEqual([early.code, early.statusFallback], ["ThrottlingException", 429]);
  assert.match(
    early.message,
    /^Rate exceeded: variant v of endpoint busy processes at most 2 requests at once \(MaxConcurrency\)/,
  );
  await inService(bench);
  assert.equal((await refused(bench.call("busy", "x"))).code, "ThrottlingException");
  await released(bench, Promise.all(pending));
  assert.equal((await bench.call("busy", "x")).container, "one");
  assert.equal(bench.sums.get("busy v Invocation4XXErrors"), 2);
});

test("a failed start rejects all waiting requests with what to do, and only a later request retries it", async () => {
  await using bench = await open();
  await bench.deploy("broken", [{ ...serverless("one", 9), isBroken: true }]);
  const waiting = await Promise.all([1, 2, 3].map(() => refused(bench.call("broken", "x"))));
  for (const { code, message } of waiting) {
    assert.equal(code, "ModelError");
    assert.match(
      message,
      /did not pass the ping health check.*the model breaks.*It is started again by (the next request|a request in 1 s or later)/s,
    );
  }
  assert.match((await refused(bench.call("broken", "x"))).message, /the model breaks/);
  assert.deepEqual(await bench.status("broken"), ["InService", "broken", null]);
});

test("a model that does not respond within the time left after its start is a model error", async () => {
  await using bench = await open({ limits: { responseMsMax: 2000 } });
  await bench.deploy("late", [serverless("one", 1)]);
  const { code, members } = await refused(bench.call("late", "hold"));
  assert.deepEqual([code, members["OriginalStatusCode"]], ["ModelError", 0]);
  const sum = (metric: string) => bench.sums.get(`late v ${metric}`);
  assert.deepEqual(
    [sum("Invocations"), sum("Invocation4XXErrors"), sum("Invocation5XXErrors"), sum("InvocationModelErrors")],
    [1, 0, 1, 1],
  );
});

test("a variant that does not fit is rejected with that reason, and starts when memory is free", async () => {
  await using bench = await open({ instances: { idleMsMax: 100 }, nodes: [nodeWith(1.5 * 2 ** 30)] });
  await bench.deploy("one", [serverless("one", 5)]);
  await bench.deploy("two", [serverless("two", 5)]);
  const pending = bench.call("one", "hold");
  await inService(bench);
  const error = await refused(bench.call("two", "x"));
  assert.deepEqual([error.code, error.statusFallback], ["ServiceUnavailable", 503]);
  assert.match(error.message, /^Serverless variant v cannot be started now: .*Memory of the nodes/);
  await released(bench, pending);
  await until("memory is free again", async () => {
    const response = await bench.call("two", "x").catch(() => null);
    return response?.container === "two";
  });
});

test("provisioned concurrency starts the instance before the first request, and again after its death and after a restart of the platform", async () => {
  const documents = new DocumentMemory();
  {
    await using bench = await open({ instances: { idleMsMax: 50 } }, documents);
    await bench.deploy("warm", [serverless("one", 4, 2)]);
    assert.deepEqual(bench.running(), ["one"]);
    const { pid } = await bench.call("warm", "x");
    assert.equal(bench.sums.get("warm v ServerlessProvisionedConcurrencyUtilization"), 0.5);
    process.kill(pid, "SIGKILL");
    assert.notEqual((await bench.call("warm", "x")).pid, pid);
  }
  await using bench = await open({ instances: { idleMsMax: 50 } }, documents);
  await until("it runs again", () => bench.running().length === 1);
  assert.equal((await bench.call("warm", "x")).container, "one");
  const shrunk = { variantName: "v", concurrency: { provisioned: 0 } };
  await bench.hosting.endpoints.resize("warm", [shrunk], owner);
  await bench.settled("warm");
  await until("its instance is stopped", () => bench.running().length === 0);
  assert.equal((await bench.call("warm", "x")).container, "one");
});

test("an endpoint changes from instances to serverless and back without failed requests", async () => {
  await using bench = await open();
  await bench.deploy("moving", [{ name: "fixed", VariantName: "v" }]);
  await bench.configure("sleeping", [serverless("less", 100)]);
  await bench.configure("fixed again", [{ name: "fixed", VariantName: "v" }]);
  const clients = bench.clients("moving");
  for (const [config, container] of [
    ["sleeping", "less"],
    ["fixed again", "fixed"],
  ] as const) {
    await bench.update("moving", config);
    await bench.settled("moving");
    assert.deepEqual(await bench.status("moving"), ["InService", config, null]);
    assert.equal((await bench.call("moving", "x")).container, container);
    await until("nothing else runs", () => bench.running().join() === container);
  }
  const { failures } = await clients.end();
  assert.deepEqual(Object.fromEntries(failures), {});
});

test("a deletion rejects the requests that wait for the instance, and leaves no process", async () => {
  await using bench = await open();
  await bench.deploy("gone", [serverless("one", 5)]);
  const pending = bench.call("gone", "x");
  await bench.hosting.endpoints.delete("gone", owner);
  assert.equal((await pending).container, "one");
  await bench.settled("gone");
  await until("nothing runs", () => bench.running().length === 0);
});

test("a client that disconnects while its request waits frees its slot, its body is not read, and the start continues", async () => {
  await using bench = await open();
  await bench.deploy("left", [serverless("one", 1)]);
  const disconnect = new AbortController();
  let readCount = 0;
  using memory = new ByteLease(new ByteBudget(2 ** 20));
  const pending = bench.hosting.invoke("left", owner.accountId, {
    headers: {},
    targetModel: null,
    targetVariant: null,
    inferenceComponent: null,
    targetContainer: null,
    isStreamed: false,
    body: () => {
      readCount += 1;
      return Promise.resolve(Buffer.from("x"));
    },
    memory,
    receivedNs: systemClock.monotonicNs(),
    signal: disconnect.signal,
  });
  assert.equal((await refused(bench.call("left", "x"))).code, "ThrottlingException");
  const reason = new Error("the client has disconnected");
  disconnect.abort(reason);
  await assert.rejects(pending, reason);
  assert.equal(readCount, 0);
  const { pid } = await bench.call("left", "x");
  assert.equal((await bench.call("left", "x")).pid, pid);
  assert.equal(bench.running().length, 1);
});

test("requests of a serverless variant are captured, including the one that starts it; without an instance it takes no memory", async () => {
  await using bench = await open({ instances: { idleMsMax: 50 }, nodes: [nodeWith(1.5 * 2 ** 30)] });
  await bench.store.createBucket("captured");
  const dataCapture = {
    InitialSamplingPercentage: 100,
    DestinationS3Uri: "s3://captured/of",
    CaptureOptions: [{ CaptureMode: "Input" }, { CaptureMode: "Output" }],
  } as const;
  // Each instance would use 1 GiB of the node's 1.5 GiB.
  for (const name of ["seen", "beside", "third"]) await bench.deploy(name, [serverless(name, 2)], { dataCapture });
  for (const body of ["first", "second"]) assert.equal((await bench.call("seen", body)).container, "seen");
  await until("its instance is stopped, and another variant uses its memory", async () => {
    const response = await bench.call("beside", "x").catch(() => null);
    return response?.container === "beside";
  });
  await bench.hosting.endpoints.delete("seen", owner);
  await bench.settled("seen");
  await until("all are written", async () => {
    const options = { prefix: "of/seen/v/", delimiter: "", startAfter: "", keysMax: 10 };
    const { objects } = await bench.store.list("captured", options);
    const files = objects.map(async ({ key }) => await text((await bench.store.get("captured", key)).body));
    return (await Promise.all(files)).join("").split("\n").length === 3;
  });
});
