import assert from "node:assert/strict";
import { test } from "node:test";
import { instanceTypeSize } from "../../packages/hosting/src/definitions/instance-types.ts";
import { instancePrices, type InstancePrice } from "./instance-prices.ts";
import { cheapestFor, dedicatedPlan, packedPlan, sharedPlan } from "./plan.ts";

const gibi = 2 ** 30;
const small: InstancePrice = { type: "small", vcpuCount: 2, sustainedVcpus: 0.4, memoryGib: 4, hourlyUsd: 0.05 };
const fast: InstancePrice = { type: "fast", vcpuCount: 2, sustainedVcpus: 2, memoryGib: 4, hourlyUsd: 0.1 };
const large: InstancePrice = { type: "large", vcpuCount: 2, sustainedVcpus: 2, memoryGib: 16, hourlyUsd: 0.15 };
const all = [large, fast, small];
const need = (memoryGib: number, vcpus = 0) => ({ memoryBytes: memoryGib * gibi, vcpus });

test("every priced instance type has the vCPUs and the memory that the platform knows for it, and one price", () => {
  for (const { type, vcpuCount, memoryGib, sustainedVcpus, hourlyUsd } of instancePrices.instances) {
    assert.deepEqual(instanceTypeSize(type), { vcpuCount, memoryBytes: memoryGib * gibi }, type);
    assert.ok(sustainedVcpus > 0 && sustainedVcpus <= vcpuCount && hourlyUsd > 0, type);
  }
  const types = instancePrices.instances.map(({ type }) => type);
  assert.equal(new Set(types).size, types.length);
});

test("a server runs on the cheapest type with nine tenths of the memory and half of the sustained vCPUs", () => {
  assert.equal(cheapestFor(all, need(3.6)).type, "small");
  assert.equal(cheapestFor(all, need(3.61)).type, "large");
  assert.equal(cheapestFor(all, need(1, 0.2)).type, "small");
  assert.equal(cheapestFor(all, need(1, 0.21)).type, "fast");
  assert.throws(() => cheapestFor(all, need(20, 0.5)), {
    name: "RangeError",
    message: "no instance type of the price table has 21.5 GB and 0.50 vCPUs: add a larger one",
  });
});

test("an endpoint for each server has an instance for each server", () => {
  assert.deepEqual(dedicatedPlan(all, need(0.2), 1000), { type: "small", count: 1000, monthlyUsd: 1000 * 0.05 * 730 });
});

test("a shared fleet has the instances that its memory and its processors need, and at least the minimum", () => {
  assert.deepEqual(sharedPlan(small, need(1, 0.1), 2), { type: "small", count: 2, monthlyUsd: 2 * 0.05 * 730 });
  assert.equal(sharedPlan(small, need(7.2), 2).count, 2);
  assert.equal(sharedPlan(small, need(7.3), 2).count, 3);
  assert.equal(sharedPlan(small, need(1, 0.9), 2).count, 5);
});

test("equal servers are packed on the type that makes all of them cheapest", () => {
  assert.deepEqual(packedPlan(all, need(0.5), { count: 100 }), {
    type: "large",
    count: 4,
    perInstance: 28,
    monthlyUsd: 4 * 0.15 * 730,
  });
  assert.equal(packedPlan(all, need(0.5), { count: 7 }).type, "small");
  assert.equal(packedPlan(all, need(0.1, 0.5), { count: 100 }).perInstance, 2);
  assert.equal(packedPlan([large], need(0.5), { count: 100, base: need(4.4) }).perInstance, 20);
  assert.throws(() => packedPlan(all, need(15), { count: 1 }), /larger than every instance/);
  assert.throws(() => packedPlan(all, need(1), { count: 1, base: need(15) }), /larger than every instance/);
});
