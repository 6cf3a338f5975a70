/** Implementations of hosting's `ModelHost`. `ProcessHost` runs instances as child processes of the platform. */
export {
  ProcessHost,
  type ContainerCommand,
  type ContainerStart,
  type ProcessHostOptions,
} from "./process/process-host.ts";
