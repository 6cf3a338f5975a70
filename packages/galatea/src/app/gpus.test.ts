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

test("the memory for models is the free memory of each GPU, or all of it when the GPU does not report its use", () => {
  assert.deepEqual(
    [...freeBytes([reading, { ...reading, memoryUsedBytes: null }, reading])],
    [
      ["gpu 0", 700],
      ["gpu 2", 700],
    ],
  );
});

test("a model is charged with the GPU memory of its own processes", () => {
  const empty = { ...reading, processes: [] };
  assert.deepEqual([...usedDeviceBytes([empty, reading], [7, 9, 10])], [["gpu 1", 125]]);
  assert.deepEqual([...usedDeviceBytes([reading], [])], []);
});

test("CUDA_DEVICE_ORDER is PCI_BUS_ID unless the operator sets the variable", () => {
  assert.deepEqual(withGpuOrder({ A: "b" }, 0), { A: "b" });
  assert.deepEqual(withGpuOrder({ A: "b" }, 1), { CUDA_DEVICE_ORDER: "PCI_BUS_ID", A: "b" });
  assert.deepEqual(withGpuOrder({ CUDA_DEVICE_ORDER: "FASTEST_FIRST" }, 1), { CUDA_DEVICE_ORDER: "FASTEST_FIRST" });
});
