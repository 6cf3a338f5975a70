/**
 * Readings of the machine's NVIDIA GPUs. A separate process calls NVIDIA's management library, because a call may block in the driver. In
 * the server's process, a blocked call would delay requests and the shutdown.
 */
export { GpuWatch } from "./gpu-watch.ts";
export { visibleReadings, gpuDevices, hasGpuDriver, visibleGpuCount } from "./visible-gpus.ts";
