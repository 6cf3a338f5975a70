import assert from "node:assert/strict";
import { test } from "node:test";
import { systemClock } from "@galatea/base";
import type { InstanceUsage } from "../instances/index.ts";
import type { VariantInstance } from "./variant-instance.ts";
import { InstanceSampler } from "./instance-sampler.ts";

const budget = { vcpuCount: 1, memoryBytes: 100 };
const used: InstanceUsage = { cpuNs: 1, memoryBytes: 50, diskShare: 0.25, gpus: null };

async function sampled(usages: readonly (readonly [string, InstanceUsage | null])[]): Promise<string[]> {
  const reported: string[] = [];
  const sampler = new InstanceSampler(systemClock);
  const member = { id: "i", budget, usages: () => Promise.resolve(usages) } as unknown as VariantInstance;
  await sampler.sample(member, {
    instance: (metric, value) => reported.push(`${metric} ${value}`),
    container: (name) => (metric, value) => reported.push(`${name} ${metric} ${value}`),
  });
  return reported.filter((each) => each.includes("GPU"));
}

test("GPU metrics exist only for instances with GPUs, with 100 for each whole GPU, and sum up memory over containers", async () => {
  assert.deepEqual(await sampled([["a", used]]), []);
  assert.deepEqual(await sampled([["a", { ...used, gpus: { busy: 1.5, memory: 0.25 } }]]), [
    "GPUUtilization 150",
    "GPUMemoryUtilization 25",
  ]);
  const both = await sampled([
    ["a", { ...used, gpus: { busy: 0.5, memory: 0.25 } }],
    ["b", { ...used, gpus: { busy: 0.25, memory: 0.5 } }],
    ["c", used],
  ]);
  assert.deepEqual(both, [
    "a GPUUtilization 50",
    "a GPUMemoryUtilization 25",
    "b GPUUtilization 25",
    "b GPUMemoryUtilization 50",
    "GPUUtilization 50",
    "GPUMemoryUtilization 75",
  ]);
});

test("the samples of removed instances are dropped", async () => {
  const sampler = new InstanceSampler(systemClock);
  const reported: string[] = [];
  const to = {
    instance: (metric: string) => reported.push(metric),
    container: (name: string) => (metric: string) => reported.push(`${name} ${metric}`),
  };
  const usages = () => Promise.resolve([["a", used] as const, ["b", used] as const]);
  const sample = async () => {
    reported.length = 0;
    await sampler.sample({ id: "i", budget, usages } as unknown as VariantInstance, to);
    return reported.filter((each) => each.includes("CPU"));
  };
  const all = ["a CPUUtilization", "b CPUUtilization", "CPUUtilization"];
  assert.deepEqual(await sample(), []);
  sampler.keep(new Set(["i", "j"]));
  assert.deepEqual(await sample(), all);
  // CPU usage is the difference between two samples, so that the first sample has none.
  sampler.keep(new Set(["j"]));
  assert.deepEqual(await sample(), []);
});
