import assert from "node:assert/strict";
import { test } from "node:test";
import { gpuUsageOf } from "./gpu-usage.ts";

const gpu = {
  memoryTotalBytes: 1000,
  utilization: 0.5,
  processes: [
    { pid: 1, memoryBytes: 100 },
    { pid: 2, memoryBytes: 300 },
    { pid: 9, memoryBytes: 50 },
  ],
};

test("an instance's GPU use is the utilization of its processes' GPUs and their share of those GPUs' memory", () => {
  const other = { ...gpu, utilization: 0.25, processes: [{ pid: 2, memoryBytes: 500 }] };
  const elsewhere = { ...gpu, processes: [{ pid: 9, memoryBytes: 900 }] };
  assert.deepEqual(gpuUsageOf([gpu, other, elsewhere], new Set([1, 2, 3])), { busy: 0.75, memory: 0.9 });
  assert.deepEqual(gpuUsageOf([elsewhere], new Set([1])), { busy: 0, memory: 0 });
  assert.equal(gpuUsageOf([], new Set([1])), null, "null on a machine without GPUs");
  const silent = { ...gpu, memoryTotalBytes: null, utilization: null };
  assert.deepEqual(gpuUsageOf([silent], new Set([1])), { busy: 0, memory: 0 });
});
