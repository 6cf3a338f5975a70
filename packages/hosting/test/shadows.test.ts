/** Shadow variants, with real processes, and callers that must not notice them. */
import assert from "node:assert/strict";
import { text } from "node:stream/consumers";
import { test } from "node:test";
import { ByteBudget, ByteLease, systemClock } from "@galatea/base";
import { owner } from "./hosting-fixture.ts";
import { TrafficFixture, until } from "./traffic-fixture.ts";

const lost = (bench: TrafficFixture) => bench.hosting.mirrorStatistics.lost;
const invocations = (bench: TrafficFixture, name: string) => bench.sums.get(`${name} Invocations`) ?? 0;

async function call(bench: TrafficFixture, name: string, requestCount: number, body = "x"): Promise<void> {
  for (let index = 0; index < requestCount; index += 1) {
    const { variant, container } = await bench.call(name, body);
    assert.deepEqual([variant, container], ["a", "a"]);
  }
}

test("a shadow gets its share of requests, its responses are discarded, and it has its own metrics and weight", async () => {
  await using bench = await TrafficFixture.open();
  await bench.deploy("mirrored", [
    { name: "a", InitialVariantWeight: 0.5 },
    { name: "s", InitialVariantWeight: 3, isShadow: true },
  ]);
  await call(bench, "mirrored", 20);
  await until("all copies have a response", () => invocations(bench, "mirrored s") === 20);
  assert.equal(invocations(bench, "mirrored a"), 20);
  assert.equal(bench.sums.get("mirrored s Invocation5XXErrors"), 0);
  assert.ok((bench.sums.get("mirrored s ModelLatency") ?? 0) > 0);
  await assert.rejects(bench.call("mirrored", "x", "s"), /Variant s not found for Request of endpoint mirrored/);
  const noProduction = [{ variantName: "a", weight: 0 }];
  await assert.rejects(bench.hosting.endpoints.resize("mirrored", noProduction, owner), /needs a weight above zero/);
  await bench.hosting.endpoints.resize("mirrored", [{ variantName: "s", weight: 0 }], owner);
  await bench.settled("mirrored");
  await call(bench, "mirrored", 20);
  await until("no copy is under way", () => bench.hosting.mirrorStatistics.callCount === 0);
  assert.equal(invocations(bench, "mirrored s"), 20);
});

test("a shadow that hangs delays no caller: its mirrored requests are limited, and further ones are dropped", async () => {
  await using bench = await TrafficFixture.open(undefined, null, { mirroring: { endpointBytesMax: 400_000 } });
  await bench.deploy("hung", [{ name: "a" }, { name: "s", isShadow: true }]);
  const body = "y".repeat(10_000);
  bench.signal("SIGSTOP", "s");
  try {
    let highestBytes = 0;
    for (let round = 0; round < 20; round += 1) {
      await Promise.all(Array.from({ length: 10 }, () => call(bench, "hung", 1, body)));
      highestBytes = Math.max(highestBytes, bench.hosting.mirrorStatistics.bytes);
    }
    assert.ok(highestBytes > 300_000 && highestBytes <= 400_000, `${highestBytes} bytes are buffered`);
    assert.ok(lost(bench)["no-room"] >= 100, `${lost(bench)["no-room"]} were dropped`);
    assert.equal(invocations(bench, "hung a"), 200);
    assert.equal(bench.sums.get("hung a InvocationModelErrors"), 0);
  } finally {
    bench.signal("SIGCONT", "s");
  }
  await until("its copies have a response", () => bench.hosting.mirrorStatistics.callCount === 0);
  assert.deepEqual(bench.hosting.mirrorStatistics.bytes, 0);
  assert.equal(invocations(bench, "hung s") + lost(bench)["no-room"], 200);
});

test("a shadow with an endless response, at once or chunk by chunk, delays no caller, and is aborted with its endpoint", async () => {
  await using bench = await TrafficFixture.open();
  await bench.deploy("flooded", [{ name: "a" }, { name: "s", isShadow: true }]);
  const budget = new ByteBudget(2 ** 20);
  const streamed = async () => {
    using memory = new ByteLease(budget);
    const reply = await bench.hosting.invoke("flooded", owner.accountId, {
      headers: { "content-type": "text/csv" },
      targetModel: null,
      targetVariant: null,
      targetContainer: null,
      isStreamed: true,
      body: () => Promise.resolve(Buffer.from("flood")),
      memory,
      receivedNs: systemClock.monotonicNs(),
      signal: new AbortController().signal,
    });
    assert.ok(!Buffer.isBuffer(reply.body));
    const message = await text(reply.body);
    reply.done();
    return message.split(" ")[0];
  };
  for (let round = 0; round < 20; round += 1) assert.equal(await streamed(), "a");
  await call(bench, "flooded", 40, "flood");
  await call(bench, "flooded", 100);
  // A shadow response may stream until the time limit. It is read and discarded.
  const { callCount, bytes } = bench.hosting.mirrorStatistics;
  assert.ok(callCount >= 1 && bytes < 64 * 2 ** 20, `${callCount} copies buffer ${bytes} bytes`);
  assert.equal(bench.sums.get("flooded a InvocationModelErrors"), 0);
  await bench.hosting.endpoints.delete("flooded", owner);
  await bench.settled("flooded");
  assert.deepEqual([bench.hosting.mirrorStatistics.callCount, bench.hosting.mirrorStatistics.bytes], [0, 0]);
  await until("its instances have ended", () => bench.running().length === 0);
});

test("a shadow that does not respond delays neither an update that removes it nor a deletion", async () => {
  await using bench = await TrafficFixture.open();
  await bench.deploy("left", [{ name: "a" }, { name: "s", isShadow: true }]);
  await bench.configure("again", [{ name: "a" }, { name: "s", isShadow: true }]);
  const underWay = () => bench.hosting.mirrorStatistics.callCount;
  /** Sends a request to which the production variant responds, but not the shadow variant. */
  const pending = async () => {
    let hasResponse = false;
    const invocation = call(bench, "left", 1, "hold").then(() => (hasResponse = true));
    await until("the caller has its response", () => {
      bench.signal("SIGUSR2", "a");
      return hasResponse;
    });
    await invocation;
    assert.equal(underWay(), 1);
  };
  await pending();
  await bench.update("left", "again");
  await bench.settled("left");
  await until("the old shadow's request is aborted", () => underWay() === 0);
  await pending();
  await bench.hosting.endpoints.delete("left", owner);
  await bench.settled("left");
  assert.deepEqual([underWay(), bench.hosting.mirrorStatistics.bytes], [0, 0]);
  await until("its instances have ended", () => bench.running().length === 0);
});

test("a shadow that dies is restarted, and callers are not affected", async () => {
  await using bench = await TrafficFixture.open();
  await bench.deploy("dying", [{ name: "a" }, { name: "s", isShadow: true }]);
  const clients = bench.clients("dying", 4);
  for (let round = 0; round < 3; round += 1) {
    const [pid, ...others] = bench.pidsOf("s");
    assert.deepEqual(others, []);
    bench.signal("SIGKILL", "s");
    await until("another process is there", () => bench.pidsOf("s").some((each) => each !== pid));
    const received = invocations(bench, "dying s");
    await until("the new process gets copies", () => invocations(bench, "dying s") > received + 20);
  }
  const { results: answers, failures } = await clients.end();
  assert.deepEqual([[...answers.keys()], [...failures]], [["a a"], []]);
  assert.equal(bench.sums.get("dying a InvocationModelErrors"), 0);
});

test("updates of endpoints with a shadow, including its promotion, fail no request", async () => {
  await using bench = await TrafficFixture.open();
  await bench.deploy("promoted", [
    { name: "a", InitialInstanceCount: 2 },
    { name: "s", isShadow: true },
  ]);
  const clients = bench.clients("promoted", 4);
  await bench.configure("canary", [
    { name: "a", InitialInstanceCount: 2 },
    { name: "s", isShadow: true },
  ]);
  const routing = {
    Type: "CANARY",
    WaitIntervalInSeconds: 0,
    CanarySize: { Type: "INSTANCE_COUNT", Value: 1 },
  } as const;
  await bench.update("promoted", "canary", {
    deploymentConfig: { BlueGreenUpdatePolicy: { TrafficRoutingConfiguration: routing } },
  });
  await bench.settled("promoted");
  assert.deepEqual(await bench.status("promoted"), ["InService", "canary", null]);
  await bench.configure("rolled", [{ name: "a", InitialInstanceCount: 2 }]);
  const batch = { Type: "INSTANCE_COUNT", Value: 1 } as const;
  await bench.update("promoted", "rolled", {
    deploymentConfig: { RollingUpdatePolicy: { MaximumBatchSize: batch, WaitIntervalInSeconds: 0 } },
  });
  await bench.settled("promoted");
  await until("the shadow ends", () => !bench.running().includes("s"));
  await bench.configure("swapped", [{ name: "s" }, { name: "a", isShadow: true }]);
  await bench.update("promoted", "swapped");
  await bench.settled("promoted");
  assert.deepEqual(await bench.status("promoted"), ["InService", "swapped", null]);
  await until("the previous shadow responds", () => (clients.counts.results.get("s s") ?? 0) > 20);
  const { results: answers, failures } = await clients.end();
  assert.deepEqual([...failures], []);
  assert.deepEqual([...answers.keys()].toSorted(), ["a a", "s s"]);
  await bench.configure("broken", [{ name: "s" }, { name: "a", isShadow: true, isBroken: true }]);
  await bench.update("promoted", "broken");
  await bench.settled("promoted");
  const [at, configName, reason] = await bench.status("promoted");
  assert.deepEqual([at, configName], ["InService", "swapped"]);
  assert.match(reason ?? "", /variant a did not pass the ping health check/);
});
