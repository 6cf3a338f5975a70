import { datatypeFromNumber, type Datatype } from "../tensor/index.ts";
import { InstanceKind, TimeoutAction } from "./message.ts";
import type {
  DynamicBatchingMessage,
  EnsembleMessage,
  InputMessage,
  ModelConfigMessage,
  OutputMessage,
  QueuePolicyMessage,
} from "./message.ts";
import type {
  DynamicBatchingConfig,
  EnsembleConfig,
  InputConfig,
  ModelConfig,
  OutputConfig,
  QueuePolicy,
  SchedulingConfig,
  VersionPolicy,
  WarmUpInput,
  WarmUpSample,
} from "./model-config.ts";

/**
 * Returns the plain form of a completed message. Tensors without a datatype are omitted from `inputs` and `outputs`, because a backend may
 * still complete them. `checkConfig` rejects tensors whose datatype is then still absent.
 */
export function toModelConfig(message: ModelConfigMessage): ModelConfig {
  return {
    name: message.name,
    platform: message.platform,
    backend: message.backend,
    versionPolicy: versionPolicy(message),
    maxBatchSize: message.maxBatchSize,
    inputs: message.input.flatMap(inputConfig),
    outputs: message.output.flatMap(outputConfig),
    scheduling: scheduling(message),
    instanceGroups: message.instanceGroup.map((group) => ({
      name: group.name,
      kind: `KIND_${InstanceKind[group.kind]}` as ModelConfig["instanceGroups"][number]["kind"],
      count: group.count,
      gpus: group.gpus,
    })),
    defaultModelFilename: message.defaultModelFilename,
    parameters: new Map(Object.entries(message.parameters).map(([key, value]) => [key, value.stringValue])),
    metricTags: new Map(Object.entries(message.metricTags)),
    decoupled: message.modelTransactionPolicy?.decoupled ?? false,
    graphLevel: message.optimization?.graph?.level ?? 0,
    warmUps: message.modelWarmup.map(warmUpSample),
    message,
  };
}

function warmUpSample(sample: ModelConfigMessage["modelWarmup"][number]): WarmUpSample {
  return {
    name: sample.name,
    batchSize: sample.batchSize,
    count: Math.max(sample.count, 1),
    inputs: Object.entries(sample.inputs).map(([name, input]) => ({
      name,
      datatype: datatypeFromNumber(input.dataType) ?? null,
      dims: input.dims.map(Number),
      content: warmUpContent(input.inputDataType),
    })),
  };
}

type WarmUpData = ModelConfigMessage["modelWarmup"][number]["inputs"][string]["inputDataType"];

/** Returns the content of a warm-up input. The member that is set selects the content, even if its value is false. */
function warmUpContent(data: WarmUpData): WarmUpInput["content"] {
  switch (data.case) {
    case "zeroData":
      return { kind: "zero" };
    case "randomData":
      return { kind: "random" };
    case "inputDataFile":
      return { kind: "file", file: data.value };
    default:
      return { kind: "none" };
  }
}

function versionPolicy(message: ModelConfigMessage): VersionPolicy {
  const choice = message.versionPolicy?.policyChoice;
  switch (choice?.case) {
    case "all":
      return { kind: "all" };
    case "specific":
      return { kind: "specific", versions: choice.value.versions.map(Number) };
    case "latest":
      return { kind: "latest", versionCount: choice.value.numVersions };
    default:
      return { kind: "latest", versionCount: 1 };
  }
}

function tensorShape(
  tensor: InputMessage | OutputMessage,
): { datatype: Datatype; dims: number[]; backendDims: number[] } | null {
  const datatype = datatypeFromNumber(tensor.dataType);
  if (datatype === undefined) return null;
  const dims = tensor.dims.map(Number);
  return { datatype, dims, backendDims: tensor.reshape?.shape.map(Number) ?? dims };
}

function inputConfig(input: InputMessage): InputConfig[] {
  const shape = tensorShape(input);
  if (shape === null) return [];
  return [{ name: input.name, ...shape, optional: input.optional, allowRaggedBatch: input.allowRaggedBatch }];
}

function outputConfig(output: OutputMessage): OutputConfig[] {
  const shape = tensorShape(output);
  return shape === null ? [] : [{ name: output.name, ...shape, labelFilename: output.labelFilename }];
}

function scheduling(message: ModelConfigMessage): SchedulingConfig {
  const choice = message.schedulingChoice;
  switch (choice.case) {
    case "dynamicBatching":
      return dynamicBatching(choice.value, message.maxBatchSize);
    case "ensembleScheduling":
      return ensemble(choice.value);
    default:
      return { kind: "direct" };
  }
}

function dynamicBatching(dynamic: DynamicBatchingMessage, maxBatchSize: number): DynamicBatchingConfig {
  return {
    kind: "dynamic",
    // A model that does not batch may still configure dynamic batching: each request is then a batch of one.
    preferredBatchSizes:
      dynamic.preferredBatchSize.length > 0
        ? dynamic.preferredBatchSize.toSorted((a, b) => a - b)
        : [Math.max(1, maxBatchSize)],
    queueDelayMaxUs: Number(dynamic.maxQueueDelayMicroseconds),
    preserveOrdering: dynamic.preserveOrdering,
    priorityLevels: Number(dynamic.priorityLevels),
    defaultPriorityLevel: Number(dynamic.defaultPriorityLevel),
    defaultQueuePolicy: queuePolicy(dynamic.defaultQueuePolicy),
    priorityQueuePolicy: new Map(
      Object.entries(dynamic.priorityQueuePolicy).map(([level, policy]) => [Number(level), queuePolicy(policy)]),
    ),
  };
}

function queuePolicy(policy: QueuePolicyMessage | undefined): QueuePolicy {
  return {
    timeoutAction: policy?.timeoutAction === TimeoutAction.DELAY ? "DELAY" : "REJECT",
    defaultTimeoutUs: Number(policy?.defaultTimeoutMicroseconds ?? 0n),
    allowTimeoutOverride: policy?.allowTimeoutOverride ?? false,
    queueLengthMax: policy?.maxQueueSize ?? 0,
  };
}

function ensemble(choice: EnsembleMessage): EnsembleConfig {
  return {
    kind: "ensemble",
    steps: choice.step.map((step) => ({
      modelName: step.modelName,
      modelVersion: Number(step.modelVersion),
      inputMap: new Map(Object.entries(step.inputMap)),
      outputMap: new Map(Object.entries(step.outputMap)),
    })),
    inflightRequestsMax: choice.maxInflightRequests,
  };
}
