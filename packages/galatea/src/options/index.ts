/**
 * The flags and options of all commands. Each command has a table of flags, from which the type of its options is
 * inferred, so a new flag is one row. This module uses no HTTP and no models, and does not read environment variables.
 */
export { agentFlags, agentOptions, type AgentOptions } from "./agent-flags.ts";
export { autoscaleFlags, autoscaleOptions, type AutoscaleOptions } from "./autoscale-flags.ts";
export { backendFlags, type BackendOptions } from "./backend-flags.ts";
export { flagVariables } from "./container-arguments.ts";
export { convertFlags, convertOptions, type ConvertOptions } from "./convert-flags.ts";
export { didYouMean } from "./did-you-mean.ts";
export { integerFlag, parsedFlag, switchFlag, UsageError, type Flag, type FlagTable } from "./flag.ts";
export { frameworkFlags, frameworkOptions, type FrameworkOptions } from "./framework-flags.ts";
export { gatewayFlags, gatewayOptions, type GatewayCommandOptions } from "./gateway-flags.ts";
export { imageFlags, imageOptions, type ImageOptions } from "./image-flags.ts";
export { parseFlags, type OptionsOf, type Parsed } from "./parse-flags.ts";
export {
  backupFlags,
  backupOptions,
  targetPlatformFlags,
  endpointOptions,
  envFlags,
  envOptions,
  eventsFlags,
  platformDefaults,
  recordsFlags,
  recordsOptions,
  restartFlags,
  type BackupOptions,
  type EndpointOptions,
  type EnvOptions,
  type EventsOptions,
  type PlatformAddressOptions,
  type RecordsCopyOptions,
  type RestartOptions,
} from "./platform-flags.ts";
export { serveFlags, type ServedContainerKind } from "./serve-flags.ts";
export { serveOptions, type ServedContainer, type ServeOptions } from "./serve-options.ts";
export { upFlags, upOptions, type AgentReference, type UpOptions } from "./up-flags.ts";
