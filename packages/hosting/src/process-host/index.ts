/** A `ModelHost` that runs instances as local processes, and the isolation of tenants that this machine allows. */
export { ProcessHost, type ContainerCommand, type ContainerStart } from "./process-host.ts";
export { isolationGaps, isolationKinds, readIsolationCapabilities, logIsolationGaps } from "./tenant-confinement.ts";
