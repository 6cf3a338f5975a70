import assert from "node:assert/strict";
import { test } from "node:test";
import { completeConfig } from "./complete-config.ts";
import { parseConfigText } from "./parse-text.ts";
import { placedInstances } from "./placed-instances.ts";

function placed(pbtxt: string, gpuCount: number): string[] {
  const config = completeConfig(parseConfigText(`backend: "python" ${pbtxt}`, "config.pbtxt"), {
    directoryName: "m",
    servedName: "m",
    versionEntries: [],
    gpuCount,
  });
  return placedInstances(config, gpuCount).map(({ name, kind, deviceId }) => `${name} ${kind} ${deviceId}`);
}

test("a KIND_GPU group has its count of instances on each GPU, and on the CPU if there is none", () => {
  assert.deepEqual(placed("", 0), ["m_0 CPU 0"]);
  assert.deepEqual(placed("", 2), ["m_0 GPU 0", "m_0 GPU 1"]);
  const named = "instance_group [ { count: 2 gpus: [ 1 ] }, { kind: KIND_CPU }, { kind: KIND_MODEL } ]";
  assert.deepEqual(placed(named, 2), ["m_0_0 GPU 1", "m_0_1 GPU 1", "m_1_0 CPU 0", "m_2_0 MODEL 0"]);
  assert.deepEqual(placed(named, 0), ["m_0_0 CPU 0", "m_0_1 CPU 0", "m_1_0 CPU 0", "m_2_0 MODEL 0"]);
  assert.deepEqual(placed("instance_group { kind: KIND_AUTO count: 2 gpus: [ 1, 0 ] }", 2), [
    "m_0_0 GPU 1",
    "m_0_0 GPU 0",
    "m_0_1 GPU 1",
    "m_0_1 GPU 0",
  ]);
});

test("a missing GPU is rejected with Triton's error", () => {
  assert.throws(() => placed('instance_group { name: "g" gpus: [ 0, 2 ] }', 2), {
    code: "INVALID_ARG",
    message:
      "instance group g of model m specifies invalid or unsupported gpu id 2. GPUs with at least the minimum required CUDA compute " +
      "compatibility of 6.000000 are: 0, 1",
  });
});
