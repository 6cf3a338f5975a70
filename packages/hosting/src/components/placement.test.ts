/** Tests of the placement and the removal of components' copies, as pure functions. */
import assert from "node:assert/strict";
import { test } from "node:test";
import * as fc from "fast-check";
import { parseNodeId } from "../nodes/node.ts";
import {
  addClaims,
  claimFits,
  noClaim,
  placeCopies,
  chooseSurplusCopies,
  type CopiesRequest,
  type CopyNode,
  type CopySlot,
  type SharedInstance,
} from "./placement.ts";

const claims = fc.record({
  cpuCores: fc.integer({ min: 0, max: 16 }).map((quarters) => quarters / 4),
  acceleratorCount: fc.nat(2),
  memoryBytes: fc.integer({ min: 1, max: 100 }),
});
const sizes = fc.record({
  cpuCores: fc.nat(8),
  acceleratorCount: fc.nat(4),
  memoryBytes: fc.nat(400),
});

/** Nodes with their free capacity, and instances on them that are partly in use. */
const capacities = fc
  .record({
    nodes: fc.array(fc.record({ has: sizes, freeBytes: fc.nat(300) }), { minLength: 1, maxLength: 3 }),
    shares: fc.array(fc.tuple(fc.nat(5), fc.integer({ min: 0, max: 4 })), { maxLength: 6 }),
  })
  .map(({ nodes: described, shares }) => {
    const nodes = described.map((node, index): CopyNode => ({ ...node, id: parseNodeId(`node-${index}`) }));
    const instances = shares.map(([position, share]): SharedInstance => {
      const node = nodes[position % nodes.length];
      // The instance is empty and is not assigned to a node yet.
      if (node === undefined || share === 0) return { node: null, taken: noClaim, ownCount: 0 };
      const part = (value: number) => Math.floor((value * share) / 4);
      const { cpuCores, acceleratorCount, memoryBytes } = node.has;
      const acquired = {
        cpuCores: part(cpuCores),
        acceleratorCount: part(acceleratorCount),
        memoryBytes: part(memoryBytes),
      };
      return { node: node.id, taken: acquired, ownCount: share };
    });
    return { nodes, instances };
  });

interface Room {
  readonly nodes: readonly CopyNode[];
  readonly instances: readonly SharedInstance[];
}

function after(
  capacity: Room,
  { claim, copyBytes }: Pick<CopiesRequest, "claim" | "copyBytes">,
  slots: readonly CopySlot[],
): Room {
  const [instances, nodes] = [[...capacity.instances], [...capacity.nodes]];
  for (const { instance, node: id } of slots) {
    const state = instances[instance];
    const position = nodes.findIndex((node) => node.id === id);
    const node = nodes[position];
    assert.ok(state !== undefined && node !== undefined);
    assert.ok(state.node === null || state.node === id, "an instance has moved");
    instances[instance] = { node: id, taken: addClaims(state.taken, claim), ownCount: state.ownCount + 1 };
    nodes[position] = { ...node, freeBytes: node.freeBytes - copyBytes };
  }
  return { instances, nodes };
}

test("property: placeCopies over-commits no instance or node, moves no instance, and omits a copy only if it fits nowhere", () => {
  fc.assert(
    fc.property(
      capacities,
      fc.record({
        claim: claims,
        copyBytes: fc.integer({ min: 1, max: 100 }),
        copyCount: fc.nat(12),
        strategy: fc.constantFrom("SPREAD" as const, "BINPACK" as const),
      }),
      (capacity, request) => {
        const slots = placeCopies(capacity.instances, capacity.nodes, request);
        const filled = after(capacity, request, slots);
        const nodesOf = ({ node }: SharedInstance) => filled.nodes.filter(({ id }) => node === null || node === id);
        for (const instance of filled.instances) {
          assert.ok(nodesOf(instance).some(({ has }) => claimFits({ has, taken: noClaim }, instance.taken)));
        }
        for (const { freeBytes } of filled.nodes) assert.ok(freeBytes >= 0);
        assert.ok(slots.length <= request.copyCount);
        if (slots.length === request.copyCount) return;
        for (const instance of filled.instances) {
          for (const { has, freeBytes } of nodesOf(instance)) {
            assert.ok(freeBytes < request.copyBytes || !claimFits({ has, taken: instance.taken }, request.claim));
          }
        }
      },
    ),
  );
});

test("property: with SPREAD the copy counts of empty instances differ by at most one, and with BINPACK at most one instance is partly filled", () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 6 }), fc.nat(20), claims, (instanceCount, copyCount, claim) => {
      const has = { cpuCores: 16, acceleratorCount: 8, memoryBytes: 400 };
      const nodes = ["a", "b"].map((id): CopyNode => ({ id: parseNodeId(id), has, freeBytes: Infinity }));
      const instances = Array.from({ length: instanceCount }, () => ({ node: null, taken: noClaim, ownCount: 0 }));
      const empty = { nodes, instances };
      const request = { claim, copyBytes: 1, copyCount };
      const spread = placeCopies(instances, nodes, { ...request, strategy: "SPREAD" });
      const counts = after(empty, request, spread).instances.map(({ ownCount }) => ownCount);
      assert.ok(Math.max(...counts) - Math.min(...counts) <= 1, counts.join());
      const packed = after(
        empty,
        request,
        placeCopies(instances, nodes, { ...request, strategy: "BINPACK" }),
      ).instances;
      const hasRoom = packed.map(({ taken }) => claimFits({ has, taken }, claim));
      // At most one of the instances that are not full has copies.
      assert.ok(packed.filter(({ ownCount }, index) => hasRoom[index] === true && ownCount > 0).length <= 1);
    }),
  );
});

test("placeCopies prefers the node with the most free memory, and the first of equal instances and nodes", () => {
  const has = { cpuCores: 4, acceleratorCount: 0, memoryBytes: 100 };
  const claim = { cpuCores: 1, acceleratorCount: 0, memoryBytes: 10 };
  const [a, b] = [parseNodeId("a"), parseNodeId("b")];
  const empty = { node: null, taken: noClaim, ownCount: 0 };
  const place = (freeA: number, freeB: number, copyCount: number) =>
    placeCopies(
      [empty, empty],
      [
        { id: a, has, freeBytes: freeA },
        { id: b, has, freeBytes: freeB },
      ],
      { claim, copyBytes: 10, copyCount, strategy: "SPREAD" },
    );
  assert.deepEqual(place(100, 100, 2), [
    { instance: 0, node: a },
    { instance: 1, node: b },
  ]);
  assert.deepEqual(place(20, 100, 1), [{ instance: 0, node: b }]);
  assert.deepEqual(place(10, 20, 4), [
    { instance: 0, node: b },
    { instance: 1, node: a },
    { instance: 0, node: b },
  ]);
});

test("property: chooseSurplusCopies removes copies so that the remaining ones stay evenly spread", () => {
  fc.assert(
    fc.property(fc.array(fc.nat(4), { maxLength: 20 }), fc.nat(25), (instanceOf, surplusCount) => {
      const surplus = chooseSurplusCopies(instanceOf, surplusCount);
      assert.equal(surplus.size, Math.min(surplusCount, instanceOf.length));
      const left = instanceOf.filter((_, position) => !surplus.has(position));
      const count = (of: readonly number[], instance: number) => of.filter((each) => each === instance).length;
      for (const position of surplus) {
        const ended = instanceOf[position] ?? -1;
        // An instance that lost a copy has at most one copy fewer than any other instance.
        for (const other of left) assert.ok(count(left, other) <= count(left, ended) + 1);
      }
    }),
  );
});
