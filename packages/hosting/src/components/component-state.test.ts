/** Tests of the transitions of inference components as pure functions: all kinds of updates, and events during them. */
import assert from "node:assert/strict";
import { test } from "node:test";
import * as fc from "fast-check";
import type { CapacitySize } from "../definitions/index.ts";
import { nodeWith } from "../nodes/node-fixture.ts";
import { copyBytes, type ComponentGoal, type ComponentRecord, type ComponentSpec } from "./component-record.ts";
import { applyComponentEvent, nextComponentAction } from "./component-state.ts";
import { addClaims, claimFits, noClaim, type CopyNode, type SharedInstance } from "./placement.ts";

const owner = { region: "us-east-1", accountId: "000000000000" };
const has = { cpuCores: 4, acceleratorCount: 0, memoryBytes: 100 };

function spec(number: number, memoryBytes: number): ComponentSpec {
  const claim = { cpuCores: 1, acceleratorCount: 0, memoryBytes };
  const rest = {
    memoryBytesMax: null,
    strategy: "SPREAD",
    startSeconds: null,
    downloadSeconds: null,
    isNamed: true,
  } as const;
  return { number, claim, ...rest, model: {} as ComponentSpec["model"], request: {} };
}

const goalOf = (number: number, copyCount: number, batch: CapacitySize | null = null, waitMs = 0): ComponentGoal => {
  return { spec: number, copyCount, batch, rollbackBatch: batch, waitMs, deadlineMs: null };
};

function created(memoryBytes: number, copyCount: number): ComponentRecord {
  return {
    name: "c",
    arn: "arn",
    owner,
    createdMs: 0,
    modifiedMs: 0,
    endpointName: "e",
    variantName: "v",
    state: { at: "Creating", goal: goalOf(1, copyCount) },
    specs: [spec(1, memoryBytes)],
    copyCount,
    copies: [],
  };
}

/** Returns instances with the capacity that the component's copies leave free. */
function instancesWith({ copies, specs }: ComponentRecord, instanceCount: number): readonly SharedInstance[] {
  return Array.from({ length: instanceCount }, (_, index) => {
    const own = copies.filter(({ instance }) => instance === index);
    const claims = own.map((copy) => specs.find(({ number }) => number === copy.spec)?.claim ?? noClaim);
    return { node: own[0]?.node ?? null, taken: claims.reduce(addClaims, noClaim), ownCount: own.length };
  });
}

/** Returns a node with memory for `moreCount` more copies. */
const nodeFor = (record: ComponentRecord, moreCount: number): CopyNode => {
  return { id: nodeWith().id, has, freeBytes: moreCount * copyBytes(record) };
};

/** Performs all transitions, and calls `look` with each record. Every recorded copy comes into service. */
function run(
  from: ComponentRecord,
  instanceCount: number,
  look: (record: ComponentRecord, moveCount: number) => ComponentRecord | null = () => null,
): ComponentRecord {
  let record = from;
  let nowMs = 0;
  for (let moveCount = 0; moveCount < 500; moveCount++) {
    const instances = instancesWith(record, instanceCount);
    for (const { taken } of instances)
      assert.ok(claimFits({ has, taken: noClaim }, taken), "an instance is over-committed");
    record = look(record, moveCount) ?? record;
    const { state } = record;
    if (!("goal" in state)) return record;
    const action = nextComponentAction(
      { ...record, state },
      { instances, nodes: [nodeFor(record, Infinity)], isDraining: false },
      nowMs,
    );
    switch (action.do) {
      case "bake":
        nowMs = action.untilMs;
        break;
      case "place":
        record = applyComponentEvent(record, { kind: "placed", copies: action.copies, nowMs });
        break;
      case "settle":
        record = applyComponentEvent(record, { kind: "settled" });
        break;
      case "no-node-memory":
      case "no-instance-capacity":
        record = applyComponentEvent(record, { kind: "failed", reason: "no room", copies: record.copies });
        break;
      default:
        throw new Error("no such action");
    }
  }
  throw new Error("the transitions do not end");
}

const sizes = fc.option(
  fc.oneof(
    fc.record({ Type: fc.constant("INSTANCE_COUNT" as const), Value: fc.integer({ min: 1, max: 4 }) }),
    fc.record({ Type: fc.constant("CAPACITY_PERCENT" as const), Value: fc.integer({ min: 5, max: 50 }) }),
  ),
  { nil: null },
);

test("property: a created component has all of its copies, or is Failed without copies if they do not fit", () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 1, max: 120 }),
      fc.nat(12),
      fc.integer({ min: 0, max: 4 }),
      (memory, copyCount, instanceCount) => {
        const record = run(created(memory, copyCount), instanceCount);
        const capacity = instanceCount * Math.min(4, Math.floor(has.memoryBytes / memory));
        const expected = copyCount <= capacity ? "InService" : "Failed";
        assert.equal(record.state.at, expected);
        assert.equal(record.copies.length, copyCount <= capacity ? copyCount : 0);
      },
    ),
  );
});

test("property: an update reaches its goal or is rolled back with the reason, keeps a copy in service and respects batches", () => {
  const counts = fc.tuple(fc.nat(6), fc.nat(6), fc.integer({ min: 1, max: 4 }));
  fc.assert(
    fc.property(
      counts,
      fc.integer({ min: 1, max: 100 }),
      sizes,
      fc.nat(1),
      ([before, expected, instanceCount], memory, batch, waitMs) => {
        const first = run(created(20, before), instanceCount);
        fc.pre(first.state.at === "InService");
        const next = spec(2, memory);
        const update = { kind: "update", spec: next, goal: goalOf(2, expected, batch, waitMs) } as const;
        // If new and old copies fit at the same time, the update cannot fail.
        const isSpacious = memory <= 20 && before <= instanceCount * 2 && expected <= instanceCount * 2;
        const share =
          batch?.Type === "CAPACITY_PERCENT" ? Math.max(1, Math.floor((batch.Value * expected) / 100)) : null;
        const batchMax = share ?? batch?.Value ?? Infinity;
        let newCount = 0;
        const record = run(applyComponentEvent(first, update), instanceCount, (now) => {
          if (before > 0 && expected > 0) assert.ok(now.copies.length > 0, "no copy is in service");
          const counted = now.copies.filter((copy) => copy.spec === 2).length;
          assert.ok(counted - newCount <= batchMax, "more at once than a batch");
          newCount = counted;
          // Old copies stay until a new copy exists.
          if (isSpacious && expected > 0 && newCount === 0) assert.equal(now.copies.length, before);
          return null;
        });
        assert.equal(record.state.at, "InService");
        const { lastFailure } = record.state as { readonly lastFailure: string | null };
        const [{ number }] = record.specs;
        assert.equal(record.specs.length, 1);
        assert.equal(number, lastFailure === null ? 2 : 1);
        assert.equal(record.copies.length, lastFailure === null ? expected : before);
        assert.equal(record.copyCount, record.copies.length);
        assert.ok(record.copies.every((copy) => copy.spec === number));
        if (isSpacious) assert.equal(lastFailure, null);
      },
    ),
  );
});

test("property: an update whose copies fail to start at any transition is rolled back", () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 4 }), sizes, fc.nat(20), (copyCount, batch, failsAt) => {
      const first = run(created(20, copyCount), 2);
      const update = { kind: "update", spec: spec(2, 20), goal: goalOf(2, copyCount, batch) } as const;
      let hasFailed = false;
      const record = run(applyComponentEvent(first, update), 2, (now, moveCount) => {
        if (moveCount < failsAt || hasFailed || now.state.at !== "Updating") return null;
        hasFailed = true;
        const copies = now.copies.filter((copy) => copy.spec === 1);
        return applyComponentEvent(now, { kind: "failed", reason: "it breaks", copies });
      });
      assert.deepEqual(record.state, { at: "InService", lastFailure: hasFailed ? "it breaks" : null });
      assert.equal(record.copies.length, copyCount);
      assert.equal(record.specs[0].number, hasFailed ? 1 : 2);
    }),
  );
});

test("a failed roll-back keeps the copies in service, and the component can be updated", () => {
  const first = run(created(20, 2), 1);
  const updating = applyComponentEvent(first, { kind: "update", spec: spec(2, 20), goal: goalOf(2, 2) });
  const undoing = applyComponentEvent(updating, {
    kind: "failed",
    reason: "it breaks.",
    copies: first.copies.slice(0, 1),
  });
  const left = applyComponentEvent(undoing, {
    kind: "failed",
    reason: "so does the old one",
    copies: first.copies.slice(0, 1),
  });
  const lastFailure = "it breaks. The roll-back failed: so does the old one";
  assert.deepEqual(left.state, { at: "InService", lastFailure });
  assert.equal(left.copies.length, 1);
  assert.deepEqual(left.specs, first.specs);
});

test("an event that the state does not allow throws an error", () => {
  const serving = run(created(20, 1), 1);
  const events = [
    { kind: "settled" },
    { kind: "placed", copies: [], nowMs: 0 },
    { kind: "failed", reason: "", copies: [] },
  ] as const;
  for (const event of events) assert.throws(() => applyComponentEvent(serving, event), /while InService/);
  assert.throws(
    () => applyComponentEvent(created(20, 1), { kind: "update", spec: null, goal: goalOf(1, 1) }),
    /while Creating/,
  );
});

test("without memory for another copy an update waits for draining ones, or replaces an old copy, but never the last one", () => {
  const inService = run(created(10, 3), 3);
  const updating = applyComponentEvent(inService, { kind: "update", spec: spec(2, 10), goal: goalOf(2, 3) });
  const next = (record: ComponentRecord, moreCount: number, isDraining: boolean) => {
    const { state } = record;
    assert.ok("goal" in state);
    return nextComponentAction(
      { ...record, state },
      { instances: instancesWith(record, 3), nodes: [nodeFor(record, moreCount)], isDraining },
      0,
    );
  };
  const newCount = (record: ComponentRecord, moreCount: number) => {
    const action = next(record, moreCount, false);
    return action.do === "place" ? action.copies.filter((copy) => copy.spec === 2).length : action.do;
  };
  assert.deepEqual(
    [3, 2, 1, 0].map((moreCount) => newCount(updating, moreCount)),
    [3, 2, 1, 0],
  );
  assert.deepEqual(next(updating, 0, true), { do: "no-node-memory", missingCount: 3 });
  const last = { ...updating, copies: updating.copies.slice(0, 1) };
  assert.equal(newCount(last, 0), "no-node-memory");
});
