/**
 * A `ModelHost` that runs instances on this machine: built-in containers as local processes, and images through an `ImageRunner`. Also reports
 * which isolation between tenants this machine supports.
 */
export { ProcessHost } from "./process-host.ts";
export type { ContainerCommand, ContainerStart } from "./process-host-options.ts";
export { isolationGaps, isolationKinds, readIsolationCapabilities, logIsolationGaps } from "./tenant-confinement.ts";
export { readDiskUsage } from "./disk-usage.ts";
export type { ImageRunner, ImageSlot } from "./image-runner.ts";
