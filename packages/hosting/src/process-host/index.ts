/** A `ModelHost` that runs instances as local processes, and the isolation of tenants that this machine allows. */
export { ProcessHost, type ContainerCommand, type ContainerStart } from "./process-host.ts";
export { confinementGaps, confinementKinds, confinementMeans, warnOfGaps } from "./tenant-confinement.ts";
