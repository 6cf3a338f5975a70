/**
 * Readings of the machine's NVIDIA GPUs. A separate process calls their management library, because a call may block in the driver: one
 * that hangs delays no request and no shutdown.
 */
export { GpuWatch } from "./gpu-watch.ts";
export { asCudaNumbers, gpuDevices, hasGpuDriver, visibleGpuCount } from "./visible-gpus.ts";
