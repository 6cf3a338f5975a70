import assert from "node:assert/strict";
import { test } from "node:test";
import { freeBytes, usedDeviceBytes, withGpuOrder } from "./gpus.ts";

const reading = {
  index: 0,
  uuid: "GPU-1",
  memoryTotalBytes: 1000,
  memoryUsedBytes: 300,
  utilization: 0,
  powerWatts: null,
  powerLimitWatts: null,
  energyJoules: null,
  processes: [
    { pid: 7, memoryBytes: 100 },
    { pid: 8, memoryBytes: 50 },
    { pid: 9, memoryBytes: 25 },
  ],
};

test("models have what was free of each GPU, and of one that does not tell as much as there is", () => {
  assert.deepEqual(
    [...freeBytes([reading, { ...reading, memoryUsedBytes: null }, reading])],
    [
      ["gpu 0", 700],
      ["gpu 2", 700],
    ],
  );
});

test("a model is charged with what its own processes hold", () => {
  const empty = { ...reading, processes: [] };
  assert.deepEqual([...usedDeviceBytes([empty, reading], [7, 9, 10])], [["gpu 1", 125]]);
  assert.deepEqual([...usedDeviceBytes([reading], [])], []);
});

test("CUDA numbers GPUs as the driver's library does, unless the operator says otherwise", () => {
  assert.deepEqual(withGpuOrder({ A: "b" }, 0), { A: "b" });
  assert.deepEqual(withGpuOrder({ A: "b" }, 1), { CUDA_DEVICE_ORDER: "PCI_BUS_ID", A: "b" });
  assert.deepEqual(withGpuOrder({ CUDA_DEVICE_ORDER: "FASTEST_FIRST" }, 1), { CUDA_DEVICE_ORDER: "FASTEST_FIRST" });
});
