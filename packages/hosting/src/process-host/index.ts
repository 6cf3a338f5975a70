/** A host that runs instances as child processes of this machine. */
export { ProcessHost, type ContainerCommand, type ContainerStart } from "./process-host.ts";
export { confinementGaps, confinementKinds, confinementMeans, warnOfGaps } from "./tenant-confinement.ts";
