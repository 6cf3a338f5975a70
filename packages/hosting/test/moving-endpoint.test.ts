/**
 * One endpoint through all kinds of changes in sequence, at 200 requests per second. Only requests that the killed
 * process was processing fail.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { DeploymentConfig } from "../src/index.ts";
import { DocumentMemory } from "../src/records/contracts/index.ts";
import { owner } from "./hosting-fixture.ts";
import { TrafficFixture, until, type Arrival } from "./traffic-fixture.ts";

const endpoint = "moving";
const variantNames = ["a", "b", "c"] as const;
const weights = { a: 2, b: 1, c: 1 } as const;

/**
 * Returns the three variants of a configuration. The names of their containers contain the name of the configuration.
 */
const planned = (config: string, isBroken = false) =>
  variantNames.map((VariantName) => ({
    name: `${config}-${VariantName}`,
    VariantName,
    InitialInstanceCount: 2,
    InitialVariantWeight: weights[VariantName],
    isBroken,
  }));

const half = { Type: "CAPACITY_PERCENT", Value: 50 } as const;
const blueGreen = (Type: "ALL_AT_ONCE" | "CANARY" | "LINEAR", waitSeconds = 0.2): DeploymentConfig => ({
  BlueGreenUpdatePolicy: {
    TrafficRoutingConfiguration: {
      Type,
      WaitIntervalInSeconds: waitSeconds,
      ...(Type === "CANARY" ? { CanarySize: half } : {}),
      ...(Type === "LINEAR" ? { LinearStepSize: half } : {}),
    },
    TerminationWaitInSeconds: 0.1,
  },
});
const rolling: DeploymentConfig = { RollingUpdatePolicy: { MaximumBatchSize: half, WaitIntervalInSeconds: 0.2 } };
const alarmed: DeploymentConfig = {
  ...blueGreen("CANARY", 30),
  AutoRollbackConfiguration: { Alarms: [{ AlarmName: "errors" }] },
};

async function updated(bench: TrafficFixture, config: string, deploymentConfig: DeploymentConfig): Promise<void> {
  await bench.configure(config, planned(config));
  await bench.update(endpoint, config, { deploymentConfig });
  await bench.settled(endpoint);
  assert.deepEqual(await bench.status(endpoint), ["InService", config, null]);
}

async function rolledBack(bench: TrafficFixture): Promise<void> {
  bench.alarms.set("errors", "OK");
  await bench.configure("refused", planned("refused"));
  await bench.update(endpoint, "refused", { deploymentConfig: alarmed });
  await until("the canary has requests", async () => (await bench.shares(endpoint))[1] === 0.5);
  bench.alarms.set("errors", "ALARM");
  await bench.settled(endpoint);
  assert.match((await bench.status(endpoint))[2] ?? "", /errors is in the state ALARM/);
}

async function resized(bench: TrafficFixture, instanceCount: number): Promise<void> {
  await bench.hosting.endpoints.resize(endpoint, [{ variantName: "a", instanceCount }], owner);
  await bench.settled(endpoint);
  const running = () => bench.running().filter((name) => name.endsWith("-a")).length;
  await until("as many instances run", () => running() === instanceCount);
}

test("under updates of each kind, a roll-back, new weights, scaling and a kill only requests in the killed process fail, and all counts agree", async () => {
  await using bench = await TrafficFixture.open(new DocumentMemory());
  await bench.deploy(endpoint, planned(endpoint));
  const arrivals = bench.arrivals(endpoint, 200);

  await updated(bench, "at-once", blueGreen("ALL_AT_ONCE"));
  await updated(bench, "canary", blueGreen("CANARY"));
  await updated(bench, "linear", blueGreen("LINEAR"));
  await updated(bench, "rolling", rolling);
  await rolledBack(bench);
  const shifted = variantNames.map((variantName) => ({ variantName, weight: variantName === "c" ? 4 : 1 }));
  await bench.hosting.endpoints.resize(endpoint, shifted, owner);
  await bench.settled(endpoint);
  await resized(bench, 4);
  await resized(bench, 2);

  const { pid } = await bench.call(endpoint, "who", "a");
  const blocked: Promise<string>[] = [];
  // An instance with more requests in flight gets no further one, so that at some point both instances hold a request.
  while (bench.holderCount() < 2) {
    blocked.push(bench.call(endpoint, `hold ${blocked.length}`, "a").then(() => "", String));
    await until("the request is pending", () => bench.heldCount() === blocked.length);
  }
  let probeCount = 1;
  const killedMs = performance.now();
  process.kill(pid, "SIGKILL");
  await until("a replacement process responds", async () => {
    const probes = await Promise.all([1, 2, 3, 4].map(() => bench.call(endpoint, "again", "a")));
    probeCount += probes.length;
    const running = bench.running().filter((name) => name.endsWith("-a"));
    return running.length === 2 && new Set(probes.map((one) => one.pid)).size === 2;
  });

  const ended = await arrivals.end();
  bench.signal("SIGUSR2");
  const lost = (await Promise.all(blocked)).filter((error) => error !== "");
  const failed = ended.filter(({ came }) => "error" in came);
  const isInside = ({ beganMs, endedMs }: Arrival) => beganMs <= killedMs && endedMs >= killedMs;
  assert.deepEqual(
    failed.filter((arrival) => !isInside(arrival)),
    [],
    "what was not in the process that was killed",
  );
  assert.ok(lost.length > 0 && lost.length < blocked.length, JSON.stringify(lost));
  const counts = new Map(variantNames.map((variant) => [variant as string, 0]));
  for (const { came } of ended) {
    if (!("error" in came)) counts.set(came.variant, (counts.get(came.variant) ?? 0) + 1);
  }
  counts.set("a", (counts.get("a") ?? 0) + probeCount + blocked.length + failed.length);
  const measured = (metric: string) =>
    variantNames.map((variant) => bench.sums.get(`${endpoint} ${variant} ${metric}`));
  assert.deepEqual(measured("Invocations"), [...counts.values()]);
  assert.deepEqual(measured("Invocation5XXErrors"), [failed.length + lost.length, 0, 0]);
});
