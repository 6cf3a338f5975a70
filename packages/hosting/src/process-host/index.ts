/**
 * A `ModelHost` that runs instances on this machine as local processes, and images through an `ImageRunner`; and the isolation of tenants that
 * this machine allows.
 */
export { ProcessHost, type ContainerCommand, type ContainerStart } from "./process-host.ts";
export { isolationGaps, isolationKinds, readIsolationCapabilities, logIsolationGaps } from "./tenant-confinement.ts";
export { readDiskUsage } from "./disk-usage.ts";
export type { ImageRunner, ImageSlot } from "./image-runner.ts";
