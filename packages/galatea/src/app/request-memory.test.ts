import assert from "node:assert/strict";
import { test } from "node:test";
import { containerRequestBytes, memoryShare, requestMemory } from "./request-memory.ts";

const gibibyte = 2 ** 30;

test("a quarter of the memory is for requests: of the cgroup's where it has a limit, else of the machine's", () => {
  const machineBytes = 16 * gibibyte;
  assert.equal(memoryShare({ machineBytes, cgroupBytes: 2 * gibibyte }), gibibyte / 2);
  assert.equal(memoryShare({ machineBytes, cgroupBytes: 0 }), 4 * gibibyte);
  assert.equal(memoryShare({ machineBytes, cgroupBytes: 2 ** 63 }), 4 * gibibyte);
  assert.equal(requestMemory(1_000_000).bytesMax, 1_000_000);
});

test("a container has a quarter of its models' memory for requests, at least 64 MiB, at most what the platform has", () => {
  assert.equal(containerRequestBytes(8 * gibibyte, 4 * gibibyte), 2 * gibibyte);
  assert.equal(containerRequestBytes(1000, 4 * gibibyte), 64 * 2 ** 20);
  assert.equal(containerRequestBytes(8 * gibibyte, gibibyte), gibibyte);
});
