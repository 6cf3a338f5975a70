/** Tests of the transitions of endpoints as pure functions: all kinds of updates, and events during them. */
import assert from "node:assert/strict";
import { test } from "node:test";
import * as fc from "fast-check";
import type { CapacitySize, DeploymentConfig, ModelRecord } from "../definitions/index.ts";
import { stepsToGeneration } from "./change-steps.ts";
import {
  newEndpointChange,
  failureReason,
  isTransientState,
  newGeneration,
  routingTable,
  stableGeneration,
  type EndpointRecord,
  type Generation,
} from "./endpoint-record.ts";
import {
  applyEndpointEvent,
  nextChangeAction,
  currentStep,
  type EndpointEvent,
  peakFootprint,
} from "./endpoint-state.ts";

const owner = { region: "us-east-1", accountId: "000000000000" };

function generation(number: number, counts: readonly number[]): Generation {
  const plans = counts.map((InitialInstanceCount, index) => ({
    variant: {
      VariantName: `v${index}`,
      ModelName: "m",
      InitialInstanceCount,
      InstanceType: "ml.m5.large",
      InitialVariantWeight: index + 1,
    },
    model: { containers: [{}] } as unknown as ModelRecord,
  }));
  return newGeneration(number, { configName: `c${number}`, plans });
}

function serving(counts: readonly number[]): EndpointRecord {
  return {
    name: "e",
    arn: "arn",
    owner,
    placementKey: "0",
    createdMs: 0,
    modifiedMs: 0,
    state: { at: "InService", lastFailure: null },
    generations: [stableGeneration(generation(1, counts))],
    deploymentConfig: null,
  };
}

function updated(record: EndpointRecord, next: Generation, config: DeploymentConfig | null): EndpointRecord {
  const change = newEndpointChange(0, stepsToGeneration(record, next, config));
  return applyEndpointEvent(record, { kind: "update", next, change, deploymentConfig: config });
}

/** Returns the record after the next successful transition; null if there is none. */
function goOn(record: EndpointRecord): EndpointRecord | null {
  const { state } = record;
  if (state.at === "Creating") return applyEndpointEvent(record, { kind: "ready" });
  if (state.at !== "Updating" && state.at !== "RollingBack") return null;
  const action = nextChangeAction(state.change, Infinity);
  return applyEndpointEvent(record, action.do === "bring-up" ? { kind: "reached", nowMs: 0 } : { kind: "advanced" });
}

function throughMoves(record: EndpointRecord, look: (record: EndpointRecord) => void): EndpointRecord {
  for (let now = record, count = 0; ; count += 1) {
    assert.ok(count < 500, "an update does not end");
    look(now);
    const next = goOn(now);
    if (next === null) return now;
    now = next;
  }
}

const sizes = fc.oneof(
  fc.record({ Type: fc.constant("CAPACITY_PERCENT" as const), Value: fc.integer({ min: 5, max: 50 }) }),
  fc.record({ Type: fc.constant("INSTANCE_COUNT" as const), Value: fc.integer({ min: 1, max: 5 }) }),
);
const routing = (type: "ALL_AT_ONCE" | "CANARY" | "LINEAR", size: CapacitySize): DeploymentConfig => ({
  BlueGreenUpdatePolicy: {
    TrafficRoutingConfiguration: { Type: type, WaitIntervalInSeconds: 1, CanarySize: size, LinearStepSize: size },
  },
});
const configs: fc.Arbitrary<DeploymentConfig | null> = fc.oneof(
  fc.constant(null),
  fc
    .tuple(fc.constantFrom("ALL_AT_ONCE" as const, "CANARY" as const, "LINEAR" as const), sizes)
    .map((of) => routing(...of)),
  fc.record({
    RollingUpdatePolicy: fc.record(
      { MaximumBatchSize: sizes, WaitIntervalInSeconds: fc.constant(1), RollbackMaximumBatchSize: sizes },
      { requiredKeys: ["MaximumBatchSize", "WaitIntervalInSeconds"] },
    ),
  }),
);
const counts = fc.array(fc.integer({ min: 1, max: 12 }), { minLength: 1, maxLength: 3 });

/** Asserts that all requests are routed, and that each generation with a traffic share has an instance. */
function assertServes(record: EndpointRecord): void {
  if (record.state.at === "Creating" || record.state.at === "Deleting") return;
  const total = routingTable(record).reduce((sum, { weight }) => sum + weight, 0);
  assert.ok(Math.abs(total - 1) < 1e-9, `the shares add up to ${total}`);
  const groups = record.generations.flatMap(({ trafficShare, variants }) =>
    variants.map(({ plan, observed }) => ({ trafficShare, name: plan.variant.VariantName, observed })),
  );
  for (const { variantName } of routingTable(record)) {
    const own = groups.filter(({ name, trafficShare }) => name === variantName && trafficShare > 0);
    assert.ok(
      own.some(({ observed }) => observed.instanceCount > 0),
      `${variantName} has requests and no instance`,
    );
  }
}

const observedCounts = (record: EndpointRecord) =>
  record.generations.map(({ variants }) => variants.map(({ observed }) => observed.instanceCount));

/** Returns the number of concurrent instances: those of the step, and those that remain from earlier transitions. */
function instancesAtOnce(record: EndpointRecord): number {
  const step = currentStep(record);
  const expected = new Map(step?.generations.map(({ number, sizes: each }) => [number, each]));
  const groups = record.generations.flatMap(({ number, variants }) =>
    variants.map(({ observed }, index) =>
      Math.max(observed.instanceCount, expected.get(number)?.[index]?.instanceCount ?? 0),
    ),
  );
  return groups.reduce((sum, each) => sum + each, 0);
}

/** Asserts that the number of concurrent instances and the planned number never exceed the reservation. */
function assertWithin(reserved: number): (record: EndpointRecord) => void {
  return (record) => {
    assertServes(record);
    const planned = peakFootprint(record).instanceCount;
    assert.ok(instancesAtOnce(record) <= planned, `${instancesAtOnce(record)} at once, ${planned} planned`);
    assert.ok(planned <= reserved, `${planned} planned, ${reserved} reserved`);
    assert.ok(peakFootprint({ ...record, state: { at: "Deleting" } }).instanceCount <= reserved);
  };
}

test("property: every update reaches the new configuration, always has instances for all requests, and stays within its reservation", () => {
  fc.assert(
    fc.property(counts, counts, configs, (from, to, config) => {
      const started = updated(serving(from), generation(2, to), config);
      const done = throughMoves(started, assertWithin(peakFootprint(started).instanceCount));
      assert.deepEqual([done.state.at, failureReason(done.state)], ["InService", null]);
      assert.deepEqual([done.generations.length, done.generations[0].configName], [1, "c2"]);
      assert.deepEqual(observedCounts(done), [to]);
    }),
  );
});

test("property: a rolling update with a rollback batch reserves its instances and one batch; other updates reserve both fleets", () => {
  const size = (Value: number) => ({ Type: "INSTANCE_COUNT", Value }) as const;
  const rolling = (batch: number, back?: number): DeploymentConfig => ({
    RollingUpdatePolicy: {
      MaximumBatchSize: size(batch),
      WaitIntervalInSeconds: 0,
      ...(back === undefined ? {} : { RollbackMaximumBatchSize: size(back) }),
    },
  });
  const reservedBy = (from: readonly number[], to: readonly number[], config: DeploymentConfig | null) =>
    peakFootprint(updated(serving(from), generation(2, to), config)).instanceCount;
  fc.assert(
    fc.property(fc.integer({ min: 2, max: 30 }), fc.nat(14), fc.nat(29), (count, forth, back) => {
      const [batch, backBatch] = [1 + (forth % Math.floor(count / 2)), 1 + (back % count)];
      const reserved = reservedBy([count], [count], rolling(batch, backBatch));
      assert.ok(reserved >= count + batch && reserved <= count + Math.max(batch, backBatch), `${reserved}`);
    }),
  );
  assert.deepEqual(
    [reservedBy([4], [4], null), reservedBy([4], [4], routing("CANARY", size(1)))],
    [8, 8],
    "both generations have instances while requests shift",
  );
  assert.equal(reservedBy([4], [4], routing("LINEAR", size(2))), 8);
  assert.equal(reservedBy([4], [4], rolling(1)), 8, "all old instances start at once, in addition to all new ones");
  assert.deepEqual([reservedBy([4], [4], rolling(1, 1)), reservedBy([8], [8], rolling(2, 4))], [5, 12]);
  assert.deepEqual([reservedBy([4, 2], [4, 2], rolling(1, 1)), reservedBy([2], [10], rolling(1, 1))], [8, 11]);
});

test("property: an update that fails at any transition is rolled back, and one that is superseded reaches the newer configuration", () => {
  fc.assert(
    fc.property(counts, counts, configs, fc.nat(60), fc.boolean(), (from, to, config, moveCount, isSuperseded) => {
      const started = updated(serving(from), generation(2, to), config);
      let record = started;
      for (let count = 0; count < moveCount; count += 1) {
        const next = goOn(record);
        if (next === null || next.state.at !== "Updating") break;
        record = next;
      }
      const turned = isSuperseded
        ? updated(record, generation(3, [2, 2]), config)
        : applyEndpointEvent(record, { kind: "failed", reason: "broken" });
      const reserved = peakFootprint(isSuperseded ? turned : started).instanceCount;
      const done = throughMoves(turned, assertWithin(reserved));
      const expected = isSuperseded ? ["c3", null, [[2, 2]]] : ["c1", "broken", [from]];
      assert.deepEqual([done.generations[0].configName, failureReason(done.state), observedCounts(done)], expected);
    }),
    { numRuns: 300 },
  );
});

test("a failed roll-back keeps the instances in service, and the endpoint can be updated", () => {
  const rolling = {
    RollingUpdatePolicy: { MaximumBatchSize: { Type: "INSTANCE_COUNT", Value: 1 }, WaitIntervalInSeconds: 0 },
  };
  let record = updated(serving([4]), generation(2, [4]), rolling as DeploymentConfig);
  const reserved = peakFootprint(record).instanceCount;
  for (let count = 0; count < 5; count += 1) record = goOn(record) ?? assert.fail();
  record = applyEndpointEvent(record, { kind: "failed", reason: "one" });
  assert.equal(record.state.at, "RollingBack");
  record = applyEndpointEvent(record, { kind: "failed", reason: "two" });
  assert.deepEqual(
    [record.state.at, failureReason(record.state)],
    ["UpdateRollbackFailed", "one The roll-back failed: two"],
  );
  assertWithin(reserved)(record);
  assert.equal(isTransientState(record.state), false);
  // Instances of the generation whose rollback failed are not started again.
  const left = observedCounts(record);
  const again = updated(record, generation(3, [2]), rolling as DeploymentConfig);
  assert.deepEqual(
    currentStep(again)?.generations.map(({ sizes: each }) => each.map(({ instanceCount }) => instanceCount)),
    [...left, [2]],
  );
  const unchanged = ["fail", "fail"].reduce(
    (now, reason) => applyEndpointEvent(now, { kind: "failed", reason }),
    again,
  );
  assertServes(unchanged);
  assert.deepEqual([unchanged.state.at, observedCounts(unchanged)], ["UpdateRollbackFailed", [...left, [0]]]);
  for (const started of [again, updated(unchanged, generation(4, [2]), null)]) {
    const done = throughMoves(started, assertServes);
    const { number } = started.generations.at(-1) ?? assert.fail();
    assert.deepEqual([done.generations[0].configName, observedCounts(done)], [`c${number}`, [[2]]]);
  }
});

test("a long reason is truncated to 1,024 characters, and an event that the state does not allow throws an error", () => {
  const creating: EndpointRecord = { ...serving([1]), state: { at: "Creating" } };
  const failed = applyEndpointEvent(creating, { kind: "failed", reason: "r".repeat(2000) });
  assert.deepEqual([failed.state.at, failureReason(failed.state)?.length], ["Failed", 1024]);
  const outOfTurn: [EndpointRecord, EndpointEvent, RegExp][] = [
    [failed, { kind: "ready" }, /bug: ready while Failed/],
    [failed, { kind: "start" }, /bug: start while Failed/],
    [creating, { kind: "stop" }, /bug: stop while Creating/],
    [creating, { kind: "resize", change: newEndpointChange(0, []) }, /bug: resize while Creating/],
    [serving([1]), { kind: "advanced" }, /bug: a step while InService/],
    [serving([1]), { kind: "failed", reason: "" }, /bug: failed while InService/],
  ];
  for (const [record, event, text] of outOfTurn) assert.throws(() => applyEndpointEvent(record, event), text);
  assert.equal(applyEndpointEvent(failed, { kind: "delete" }).state.at, "Deleting");
});
