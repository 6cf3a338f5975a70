/** Tests of the placement of instances, which is a pure function of the nodes. */
import assert from "node:assert/strict";
import { test } from "node:test";
import * as fc from "fast-check";
import { noResources, parseNodeId, type Node, type NodeResources } from "./node.ts";
import { placeInstance, placementRefusalText, nodeResourceNames } from "./place-instance.ts";

const amounts = (max: number) =>
  fc.record({
    memoryBytes: fc.nat(max),
    vcpuCount: fc.nat(max),
    gpuCount: fc.nat(2),
    diskBytes: fc.nat(max),
  });
const labels = fc.constantFrom<Readonly<Record<string, string>>[]>({}, { zone: "a" }, { zone: "a", kind: "gpu" });
const clusters = fc
  .array(fc.record({ capacity: amounts(20), labels }), { maxLength: 5 })
  .map((each) =>
    each.map((node, index): Node => ({ ...node, id: parseNodeId(`node-${index}`), reserved: noResources })),
  );
const requests = fc.record({ needs: amounts(9), labels });

const sum = (one: NodeResources, other: NodeResources): NodeResources => ({
  memoryBytes: one.memoryBytes + other.memoryBytes,
  vcpuCount: one.vcpuCount + other.vcpuCount,
  gpuCount: one.gpuCount + other.gpuCount,
  diskBytes: one.diskBytes + other.diskBytes,
});

test("property: no node exceeds its capacity, an instance that fits is placed, and a rejection names the shortage of the closest node", () => {
  fc.assert(
    fc.property(clusters, fc.array(requests, { maxLength: 20 }), (cluster, requested) => {
      const nodes = [...cluster];
      for (const request of requested) {
        const fits = (node: Node) =>
          nodeResourceNames.every((name) => node.reserved[name] + request.needs[name] <= node.capacity[name]);
        const labelled = nodes.filter((node) =>
          Object.entries(request.labels).every(([name, value]) => node.labels[name] === value),
        );
        const placed = placeInstance(nodes, request);
        if (typeof placed === "string") {
          const index = nodes.findIndex(({ id }) => id === placed);
          const node = nodes[index];
          assert.ok(node !== undefined && labelled.includes(node) && fits(node));
          nodes[index] = { ...node, reserved: sum(node.reserved, request.needs) };
          continue;
        }
        assert.ok(!labelled.some(fits), "it fits somewhere");
        const closest = labelled.find(({ id }) => id === placed.closest);
        assert.equal(closest === undefined, labelled.length === 0);
        assert.equal(placed.missing.length > 0, closest !== undefined);
        for (const { resource, amount } of placed.missing) {
          assert.equal(
            amount,
            request.needs[resource] - ((closest?.capacity[resource] ?? 0) - (closest?.reserved[resource] ?? 0)),
          );
        }
      }
    }),
  );
});

test("property: the node with most free memory is chosen, and the first of equals", () => {
  fc.assert(
    fc.property(fc.array(fc.nat(3), { minLength: 1, maxLength: 6 }), (free) => {
      const nodes = free.map((memoryBytes, index): Node => {
        const capacity = { memoryBytes, vcpuCount: 1, gpuCount: 0, diskBytes: 1 };
        return { id: parseNodeId(`node-${index}`), capacity, reserved: noResources, labels: {} };
      });
      assert.equal(placeInstance(nodes, { needs: {} }), `node-${free.indexOf(Math.max(...free))}`);
    }),
  );
});

test("a rejection names the node with the least shortage, and the shortage", () => {
  const node = (id: string, capacity: Partial<NodeResources>): Node => {
    return { id: parseNodeId(id), capacity: { ...noResources, ...capacity }, reserved: noResources, labels: {} };
  };
  const mebi = 2 ** 20;
  const nodes = [node("small", { memoryBytes: 100 * mebi }), node("large", { memoryBytes: 300 * mebi, vcpuCount: 1 })];
  const refusal = placeInstance(nodes, { needs: { memoryBytes: 400 * mebi, vcpuCount: 2 } });
  assert.ok(typeof refusal !== "string");
  assert.equal(
    placementRefusalText(refusal),
    "no node can hold the instance: the node large, which comes closest, lacks 1 vCPUs and 100 MiB of memory",
  );
  const unlabelled = placeInstance(nodes, { needs: {}, labels: { zone: "a" } });
  assert.deepEqual(unlabelled, { closest: null, missing: [] });
});
