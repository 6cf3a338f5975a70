/**
 * What the machine's NVIDIA GPUs tell of themselves. Their management library is asked in a process of its own, because a call of it lasts
 * as long as the driver likes: one that hangs holds up no request and no end of the server.
 */
export { GpuWatch } from "./gpu-watch.ts";
export { asCudaNumbers, gpuDevices, hasGpuDriver, visibleGpuCount } from "./visible-gpus.ts";
