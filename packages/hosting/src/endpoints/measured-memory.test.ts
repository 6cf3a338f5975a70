import assert from "node:assert/strict";
import { test } from "node:test";
import * as fc from "fast-check";
import type { ContainerDefinition, VariantPlan } from "../definitions/index.ts";
import type { InstanceUsage } from "../instances/index.ts";
import { groupsFootprint } from "./endpoint-record.ts";
import { bytesOverReservation, MeasuredMemory, reservedBytesByContainer } from "./measured-memory.ts";

const mebi = 2 ** 20;
const budget = { vcpuCount: 2, memoryBytes: 8 * 2 ** 30 };

function planOf(containers: readonly ContainerDefinition[], expectedBytes: readonly number[]): VariantPlan {
  const owner = { region: "us-east-1", accountId: "000000000000" };
  const model = { name: "m", arn: "", createdMs: 0, owner, executionMode: "Direct" as const, request: {} };
  const variant = { VariantName: "v", ModelName: "m", InitialInstanceCount: 1, InitialVariantWeight: 1 };
  return {
    variant: { ...variant, InstanceType: "ml.m5.large" },
    model: { ...model, containers },
    expectedBytes,
  };
}

const using = (memoryBytes: number): InstanceUsage => ({ cpuNs: 0, memoryBytes, diskShare: 0, gpus: null });

test("a single model reserves the larger of its expected memory and GALATEA_MODEL_MEMORY_BYTES, a multi-model container only the latter", () => {
  const saying = (bytes: number) => ({ Environment: { GALATEA_MODEL_MEMORY_BYTES: String(bytes) } });
  const containers = [
    { ContainerHostname: "a" },
    { ContainerHostname: "b", ...saying(100 * mebi) },
    { ContainerHostname: "c", ...saying(100 * mebi) },
    { ContainerHostname: "many", Mode: "MultiModel", ...saying(50 * mebi) },
  ] as const;
  const plan = planOf(containers, [300 * mebi, 300 * mebi, 10 * mebi, 0]);
  assert.equal(groupsFootprint([{ plan, instanceCount: 2 }]).modelBytes, 2 * (300 + 300 + 100 + 50) * mebi);
  const reserved = [...reservedBytesByContainer(plan, budget, null)].map(([name, bytes]) => [name, bytes / mebi]);
  assert.deepEqual(reserved, [
    ["a", 428],
    ["b", 428],
    ["c", 228],
  ]);
  assert.deepEqual([...reservedBytesByContainer(planOf([{}], []), budget, 1024 * mebi).values()], [1152 * mebi]);
});

test("property: the reserved bytes and the excess together are at least what the containers use", () => {
  const bytes = fc.nat(10_000);
  fc.assert(
    fc.property(fc.array(fc.tuple(bytes, bytes), { maxLength: 6 }), (each) => {
      const reserved = new Map(each.map(([known], index) => [String(index), known]));
      const used = new Map(each.map(([, taken], index) => [String(index), taken]));
      const over = bytesOverReservation(reserved, used);
      const sum = (of: ReadonlyMap<string, number>) => [...of.values()].reduce((all, one) => all + one, 0);
      assert.ok(over >= 0 && sum(reserved) + over >= sum(used));
      if (each.every(([known, taken]) => taken <= known)) assert.equal(over, 0);
    }),
  );
});

test("a stopped container has no excess, and the highest measurement is kept", () => {
  const memory = new MeasuredMemory();
  const reserved = new Map([["a", 100]]);
  assert.equal(
    memory.seen(reserved, [
      ["a", using(150)],
      ["many", using(1_000_000)],
    ]),
    50,
  );
  assert.equal(memory.seen(reserved, [["a", using(300)]]), 200);
  assert.equal(memory.seen(reserved, [["a", null]]), 0);
  assert.deepEqual([...memory.mostBytes], [["a", 300]]);
});
