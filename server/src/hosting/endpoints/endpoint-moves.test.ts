/** The moves of endpoints as pure functions: of every update, and of what may happen in the middle of it. */
import assert from "node:assert/strict";
import { test } from "node:test";
import * as fc from "fast-check";
import type { CapacitySize, DeploymentConfig, ModelRecord } from "../definitions/index.ts";
import { restoringSteps, updateSteps } from "./change-steps.ts";
import {
  beginChange,
  failureReason,
  isTransient,
  newGeneration,
  plannedFootprint,
  routesOf,
  settledGeneration,
  type EndpointRecord,
  type Generation,
} from "./endpoint-record.ts";
import { moveEndpoint, nextAction, type EndpointEvent } from "./endpoint-state.ts";

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
    createdMs: 0,
    modifiedMs: 0,
    state: { at: "InService", lastFailure: null },
    generations: [settledGeneration(generation(1, counts))],
    deploymentConfig: null,
  };
}

function updated(record: EndpointRecord, next: Generation, config: DeploymentConfig | null): EndpointRecord {
  const all: EndpointRecord["generations"] = [...record.generations, next];
  const back = record.state.at === "InService" ? [] : restoringSteps(all, record.deploymentConfig);
  const change = beginChange(0, [...back, ...updateSteps(record.generations[0], next, config)]);
  return moveEndpoint(record, { kind: "update", next, change, deploymentConfig: config });
}

/** The move that follows when all goes well; null at the end. */
function goOn(record: EndpointRecord): EndpointRecord | null {
  const action = nextAction(record, Infinity);
  if (action.do === "nothing" || action.do === "tear-down") return null;
  if (record.state.at === "Creating") return moveEndpoint(record, { kind: "ready" });
  return moveEndpoint(record, action.do === "bring-up" ? { kind: "reached", nowMs: 0 } : { kind: "advanced" });
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

/** Of any state: all requests go somewhere, and whatever gets some has an instance, in another generation at least. */
function assertServes(record: EndpointRecord): void {
  if (record.state.at === "Creating" || record.state.at === "Deleting") return;
  const whole = routesOf(record).reduce((sum, { weight }) => sum + weight, 0);
  assert.ok(Math.abs(whole - 1) < 1e-9, `${whole} of the requests go somewhere`);
  const groups = record.generations.flatMap(({ trafficShare, variants }) =>
    variants.map(({ plan, observed }) => ({ trafficShare, name: plan.variant.VariantName, observed })),
  );
  for (const { variantName } of routesOf(record)) {
    const own = groups.filter(({ name, trafficShare }) => name === variantName && trafficShare > 0);
    assert.ok(
      own.some(({ observed }) => observed.instanceCount > 0),
      `${variantName} has requests and no instance`,
    );
  }
}

const observedCounts = (record: EndpointRecord) =>
  record.generations.map(({ variants }) => variants.map(({ observed }) => observed.instanceCount));

test("every update comes to the new configuration and has instances for all requests at each step; none needs more than was reserved", () => {
  fc.assert(
    fc.property(counts, counts, configs, (from, to, config) => {
      const begun = updated(serving(from), generation(2, to), config);
      const reserved = plannedFootprint(begun).instanceCount;
      const done = throughMoves(begun, (record) => {
        assertServes(record);
        assert.ok(
          observedCounts(record)
            .flat()
            .reduce((sum, each) => sum + each, 0) <= reserved,
        );
      });
      assert.deepEqual([done.state.at, failureReason(done.state)], ["InService", null]);
      assert.deepEqual([done.generations.length, done.generations[0].configName], [1, "c2"]);
      assert.deepEqual(observedCounts(done), [to]);
    }),
  );
});

test("an update that fails at any move goes back to what was there, and one that is superseded at any move comes to what superseded it", () => {
  fc.assert(
    fc.property(counts, counts, configs, fc.nat(60), fc.boolean(), (from, to, config, moveCount, isSuperseded) => {
      let record = updated(serving(from), generation(2, to), config);
      for (let count = 0; count < moveCount; count += 1) {
        const next = goOn(record);
        if (next === null || next.state.at !== "Updating") break;
        record = next;
      }
      const turned = isSuperseded
        ? updated(record, generation(3, [2, 2]), config)
        : moveEndpoint(record, { kind: "failed", reason: "broken" });
      const done = throughMoves(turned, assertServes);
      const expected = isSuperseded ? ["c3", null, [[2, 2]]] : ["c1", "broken", [from]];
      assert.deepEqual([done.generations[0].configName, failureReason(done.state), observedCounts(done)], expected);
    }),
    { numRuns: 300 },
  );
});

test("a roll-back that fails leaves what it has come to, which answers and can be updated", () => {
  const rolling = {
    RollingUpdatePolicy: { MaximumBatchSize: { Type: "INSTANCE_COUNT", Value: 1 }, WaitIntervalInSeconds: 0 },
  };
  let record = updated(serving([4]), generation(2, [4]), rolling as DeploymentConfig);
  for (let count = 0; count < 5; count += 1) record = goOn(record) ?? assert.fail();
  record = moveEndpoint(record, { kind: "failed", reason: "one" });
  assert.equal(record.state.at, "RollingBack");
  record = moveEndpoint(record, { kind: "failed", reason: "two" });
  assert.deepEqual(
    [record.state.at, failureReason(record.state)],
    ["UpdateRollbackFailed", "one The roll-back failed: two"],
  );
  assertServes(record);
  assert.equal(isTransient(record.state), false);
  const done = throughMoves(updated(record, generation(3, [2]), null), assertServes);
  assert.deepEqual([done.generations[0].configName, observedCounts(done)], ["c3", [[2]]]);
});

test("a long reason is cut to what FailureReason may be, and an event out of turn is a bug", () => {
  const creating: EndpointRecord = { ...serving([1]), state: { at: "Creating" } };
  const failed = moveEndpoint(creating, { kind: "failed", reason: "r".repeat(2000) });
  assert.deepEqual([failed.state.at, failureReason(failed.state)?.length], ["Failed", 1024]);
  const outOfTurn: [EndpointRecord, EndpointEvent, RegExp][] = [
    [failed, { kind: "ready" }, /bug: ready while Failed/],
    [failed, { kind: "start" }, /bug: start while Failed/],
    [creating, { kind: "stop" }, /bug: stop while Creating/],
    [creating, { kind: "resize", change: beginChange(0, []) }, /bug: resize while Creating/],
    [serving([1]), { kind: "advanced" }, /bug: a step while InService/],
    [serving([1]), { kind: "failed", reason: "" }, /bug: failed while InService/],
  ];
  for (const [record, event, text] of outOfTurn) assert.throws(() => moveEndpoint(record, event), text);
  assert.equal(moveEndpoint(failed, { kind: "delete" }).state.at, "Deleting");
});
