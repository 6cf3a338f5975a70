import assert from "node:assert/strict";
import { test } from "node:test";
import * as fc from "fast-check";
import { AwsError } from "@galatea/base";
import { SteppedClock } from "@galatea/base/core/stepped-clock-fixture.ts";
import { OwnerLedger } from "./owner-ledger.ts";
import { parseNodeId, type NodeDescription } from "./node.ts";
import { Nodes } from "./nodes.ts";

const mebi = 2 ** 20;

const described = (capacities: readonly number[]): readonly NodeDescription[] =>
  capacities.map((memoryBytes, index) => {
    return {
      id: parseNodeId(`node-${index}`),
      capacity: { memoryBytes, vcpuCount: 1, gpuCount: 0, diskBytes: 0 },
      labels: {},
    };
  });

function opened(capacities: readonly number[], recordedBytes = () => 0) {
  return new Nodes({
    nodes: described(capacities),
    recordedBytes,
    recordedCounts: () => [],
    pendingBytes: () => 0,
    pendingInstances: () => [],
    recordsChanged: () => new Promise<void>(() => {}),
  });
}

test("property: instances never move, never exceed a node's capacity, and release what they reserved", () => {
  const steps = fc.array(
    fc.record({ bytes: fc.integer({ min: 1, max: 9 }), ends: fc.option(fc.nat(9), { nil: null }) }),
    {
      maxLength: 40,
    },
  );
  fc.assert(
    fc.property(fc.array(fc.nat(20), { minLength: 1, maxLength: 4 }), steps, (capacities, acquired) => {
      const nodes = opened(capacities);
      const there: { readonly placed: ReturnType<Nodes["place"]>; readonly id: string; readonly bytes: number }[] = [];
      for (const { bytes, ends } of acquired) {
        if (ends === null) {
          const before = nodes.all;
          try {
            const placed = nodes.place({ needs: { memoryBytes: bytes } });
            there.push({ placed, id: placed.node.id, bytes });
          } catch (error) {
            assert.ok(error instanceof AwsError && error.code === "InsufficientInstanceCapacity");
            for (const { capacity, reserved } of before) assert.ok(reserved.memoryBytes + bytes > capacity.memoryBytes);
          }
        } else there.splice(ends, 1)[0]?.placed[Symbol.dispose]();
        for (const { id, capacity, reserved } of nodes.all) {
          const own = there.filter((each) => each.id === id);
          assert.equal(
            reserved.memoryBytes,
            own.reduce((sum, each) => sum + each.bytes, 0),
          );
          assert.ok(reserved.memoryBytes <= capacity.memoryBytes);
          assert.ok(own.every(({ placed }) => placed.node.id === id));
        }
      }
    }),
  );
});

test("a new instance without room is rejected with SageMaker's failure reason and the shortage; one from before a restart is restored anyway", () => {
  const nodes = opened([100 * mebi, 300 * mebi]);
  const request = { needs: { memoryBytes: 200 * mebi } };
  using _first = nodes.place(request);
  assert.throws(() => nodes.place(request), {
    code: "InsufficientInstanceCapacity",
    message:
      "Unable to provision requested ML compute capacity due to InsufficientInstanceCapacity error: no node can hold the instance: " +
      "the node node-0, which comes closest, lacks 100 MiB of memory. Use a smaller instance, or delete what is no longer needed.",
  });
  using restored = nodes.restore(request);
  assert.equal(restored.node.id, "node-0");
});

test("property: a number of instances fits exactly if each could be placed after the others", () => {
  const sizes = fc.array(fc.integer({ min: 1, max: 9 }), { maxLength: 8 });
  fc.assert(
    fc.property(fc.array(fc.nat(20), { minLength: 1, maxLength: 4 }), sizes, sizes, (capacities, before, further) => {
      const nodes = opened(capacities);
      const place = (memoryBytes: number) => {
        try {
          return nodes.place({ needs: { memoryBytes } });
        } catch {
          return null;
        }
      };
      for (const memoryBytes of before) place(memoryBytes);
      const tooLarge = further.find((memoryBytes) => memoryBytes > Math.max(...capacities));
      assert.equal(nodes.firstTooLarge(further)?.memoryBytes, tooLarge);
      const first = nodes.firstWithoutCapacity(further, "now");
      assert.equal(
        first?.memoryBytes,
        further.find((memoryBytes) => place(memoryBytes) === null),
      );
    }),
  );
});

test("capacity of draining instances counts as free for their successors, which wait for it", () => {
  const clock = new SteppedClock();
  const nodes = opened([100 * mebi, 100 * mebi]);
  using ledger = new OwnerLedger({ ownerName: "endpoint", nodes, clock });
  const request = { needs: { memoryBytes: 80 * mebi } };
  const shares = [ledger.place(request), ledger.place(request)];
  const lacking = {
    memoryBytes: 80 * mebi,
    shortage: "the node node-0, which comes closest, lacks 60 MiB of memory",
  };
  assert.deepEqual(nodes.firstWithoutCapacity([80 * mebi], "drained"), lacking);
  shares[1]?.markDraining();
  assert.equal(nodes.firstWithoutCapacity([80 * mebi], "drained"), null);
  assert.deepEqual(nodes.firstWithoutCapacity([80 * mebi, 80 * mebi], "drained"), lacking);
  assert.deepEqual(nodes.firstWithoutCapacity([80 * mebi], "now"), lacking);
  assert.throws(() => nodes.place(request), { code: "InsufficientInstanceCapacity" });
  for (const share of shares) share[Symbol.dispose]();
});

test("models make room only for models of the same node; each node keeps room for instances without a node", async () => {
  let recordedBytes = 0;
  const nodes = opened([100, 100], () => recordedBytes);
  using one = nodes.place({ needs: { memoryBytes: 10 } });
  using other = nodes.place({ needs: { memoryBytes: 20 } });
  assert.notEqual(one.node.id, other.node.id);
  recordedBytes = 30;
  const unloaded: string[] = [];
  const holder = (name: string, memoryUsedBytes: number) => {
    return { memoryUsedBytes, evictIdleModel: () => Promise.resolve(unloaded.push(name) > 0) };
  };
  using first = nodes.memoryOf(one.node.id).addCache(holder("first", 40), 0);
  using second = nodes.memoryOf(one.node.id).addCache(holder("second", 0), 0);
  using elsewhere = nodes.memoryOf(other.node.id).addCache(holder("elsewhere", 70), 0);
  assert.deepEqual([first.availableBytes(), second.availableBytes(), elsewhere.availableBytes()], [90, 50, 80]);
  assert.equal(await second.evictFromOtherCache(), true);
  assert.equal(await elsewhere.evictFromOtherCache(), false);
  assert.deepEqual(unloaded, ["first"]);
  one.setExcessBytes(5);
  assert.deepEqual([second.availableBytes(), elsewhere.availableBytes()], [45, 80]);
  recordedBytes = 40;
  assert.deepEqual([second.availableBytes(), elsewhere.availableBytes()], [35, 70]);
});

test("instances above their record's reservation count as draining until they are removed; during a transition, in addition to the whole reservation", () => {
  const clock = new SteppedClock();
  let recordedBytes = 30;
  const nodes = opened([100], () => recordedBytes);
  const ledger = new OwnerLedger({ ownerName: "endpoint", nodes, clock });
  ledger.setReservation(30, false);
  const shares = [1, 2, 3].map(() => ledger.place({ needs: { memoryBytes: 10 } }));
  const drainingBytes = () => nodes.draining.map(({ bytes }) => bytes);
  assert.deepEqual(drainingBytes(), []);
  recordedBytes = 10;
  ledger.setReservation(10, false);
  assert.deepEqual([drainingBytes(), nodes.freeBytesByNode[0]?.freeBytes, ledger.isDraining], [[20], 70, false]);
  recordedBytes = 20;
  ledger.setReservation(20, true);
  assert.deepEqual(drainingBytes(), []);
  clock.advance(5);
  shares[2]?.markDraining();
  assert.deepEqual(
    [drainingBytes(), nodes.draining[0]?.sinceMs, nodes.freeBytesByNode[0]?.freeBytes],
    [[10], clock.epochMs(), 70],
  );
  shares[2]?.[Symbol.dispose]();
  assert.equal(ledger.isDraining, false);
  recordedBytes = 0;
  ledger.markEnding();
  ledger[Symbol.dispose]();
  assert.deepEqual(nodes.draining, [{ owner: "endpoint", bytes: 20, sinceMs: clock.epochMs(), isEnding: true }]);
  for (const share of shares) share[Symbol.dispose]();
  assert.deepEqual(
    [nodes.draining, nodes.freeBytesByNode[0]?.freeBytes, nodes.all[0]?.reserved.memoryBytes],
    [[], 100, 0],
  );
});
