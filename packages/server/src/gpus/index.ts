/**
 * Readings of the machine's NVIDIA GPUs. A separate process calls NVIDIA's management library, because a call may block in the driver: then
 * neither requests nor the shutdown are delayed.
 */
export { GpuWatch } from "./gpu-watch.ts";
export { visibleReadings, gpuDevices, hasGpuDriver, visibleGpuCount } from "./visible-gpus.ts";
