/** config.pbtxt: parse, complete, check, print. */
export type {
  DynamicBatchingConfig,
  EnsembleConfig,
  EnsembleStepConfig,
  InputConfig,
  InstanceGroupConfig,
  ModelConfig,
  OutputConfig,
  QueuePolicy,
  SchedulingConfig,
  VersionPolicy,
} from "./model-config.ts";
