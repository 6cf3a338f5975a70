/** The composition root: what the commands start, and the only reader of the environment. */
export {
  runAutoscale,
  runBackup,
  runConvert,
  runEndpoint,
  runEnv,
  runEvents,
  runModel,
  runRestore,
  runServe,
  runUp,
  runValidate,
} from "./commands.ts";
export { containerArguments, containerKindNames, type ServedContainerKind } from "./container-environment.ts";
export type {
  AutoscaleOptions,
  BackupOptions,
  ConvertOptions,
  EndpointOptions,
  EnvOptions,
  EventsOptions,
  FrameworkOptions,
  GrpcOptions,
  PlatformPlace,
  ServeOptions,
  UpOptions,
  WorkerSettings,
} from "./options.ts";
export { platformDefaults } from "./options.ts";

export { serverVersion } from "./version.ts";
