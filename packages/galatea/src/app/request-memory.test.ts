import assert from "node:assert/strict";
import { test } from "node:test";
import { containerRequestBytes, memoryShare, requestMemory } from "./request-memory.ts";

const gibibyte = 2 ** 30;

test("a quarter of the memory is for requests: of the cgroup's limit, or of the machine if there is none", () => {
  const machineBytes = 16 * gibibyte;
  assert.equal(memoryShare({ machineBytes, cgroupBytes: 2 * gibibyte }), gibibyte / 2);
  assert.equal(memoryShare({ machineBytes, cgroupBytes: 0 }), 4 * gibibyte);
  assert.equal(memoryShare({ machineBytes, cgroupBytes: 2 ** 63 }), 4 * gibibyte);
  assert.equal(requestMemory(1_000_000).bytesMax, 1_000_000);
});

test("a container's request memory is a quarter of its models' memory, between 64 MiB and the platform's request memory", () => {
  assert.equal(containerRequestBytes(8 * gibibyte, 4 * gibibyte), 2 * gibibyte);
  assert.equal(containerRequestBytes(1000, 4 * gibibyte), 64 * 2 ** 20);
  assert.equal(containerRequestBytes(8 * gibibyte, gibibyte), gibibyte);
});
