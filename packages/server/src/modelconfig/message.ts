/** The generated protobuf types under the names that this module uses. */
export {
  BatchInput_Kind,
  BatchOutput_Kind,
  DataType,
  ModelConfigSchema,
  ModelInput_Format as InputFormat,
  ModelInstanceGroupSchema,
  ModelInstanceGroup_Kind as InstanceKind,
  ModelOptimizationPolicySchema,
  ModelOptimizationPolicy_PinnedMemoryBufferSchema as PinnedMemorySchema,
  ModelQueuePolicy_TimeoutAction as TimeoutAction,
  ModelSequenceBatching_Control_Kind as ControlKind,
  ModelTransactionPolicySchema,
  ModelVersionPolicySchema,
} from "./gen/model_config_pb.js";
export type {
  ModelConfig as ModelConfigMessage,
  ModelDynamicBatching as DynamicBatchingMessage,
  ModelEnsembling as EnsembleMessage,
  ModelInput as InputMessage,
  ModelInstanceGroup as InstanceGroupMessage,
  ModelOutput as OutputMessage,
  ModelQueuePolicy as QueuePolicyMessage,
  ModelSequenceBatching as SequenceBatchingMessage,
} from "./gen/model_config_pb.js";
