import { clone, create } from "@bufbuild/protobuf";
import { InferenceError } from "@galatea/base";
import { completeBackend } from "./complete-backend.ts";
import type { CompletionContext } from "./completion-context.ts";
import { toModelConfig } from "./from-message.ts";
import {
  InstanceKind,
  ModelConfigSchema,
  ModelInstanceGroupSchema,
  ModelOptimizationPolicySchema,
  ModelTransactionPolicySchema,
  ModelVersionPolicySchema,
  PinnedMemorySchema,
  type ModelConfigMessage,
} from "./message.ts";
import type { ModelConfig } from "./model-config.ts";

/** Returns the plain form of a message, completed with every default that Triton prints. Does not change the message. */
export function completeConfig(parsed: ModelConfigMessage, context: CompletionContext): ModelConfig {
  const message = clone(ModelConfigSchema, parsed);
  if (message.name !== "" && context.directoryName !== null && message.name !== context.directoryName) {
    throw new InferenceError(
      "INVALID_ARG",
      `unexpected directory name '${context.directoryName}' for model '${message.name}', directory name must equal model name`,
    );
  }
  message.name = context.servedName;
  message.versionPolicy ??= create(ModelVersionPolicySchema, {});
  if (message.versionPolicy.policyChoice.case === undefined) {
    message.versionPolicy = create(ModelVersionPolicySchema, {
      policyChoice: { case: "latest", value: { numVersions: 1 } },
    });
  }
  completeBackend(message, context);
  applySchedulingDefaults(message);
  if (message.platform === "ensemble") {
    message.modelTransactionPolicy ??= create(ModelTransactionPolicySchema);
    return toModelConfig(message);
  }
  const optimization = (message.optimization ??= create(ModelOptimizationPolicySchema));
  optimization.inputPinnedMemory ??= create(PinnedMemorySchema, { enable: true });
  optimization.outputPinnedMemory ??= create(PinnedMemorySchema, { enable: true });
  completeInstanceGroups(message, context);
  return toModelConfig(message);
}

/** Completes the scheduler block with defaults. Called again when a backend changes the batch size or adds a scheduler. */
export function applySchedulingDefaults(message: ModelConfigMessage): void {
  const choice = message.schedulingChoice;
  const sizes = (preferred: number[]) =>
    preferred.length === 0 && message.maxBatchSize > 0 ? [message.maxBatchSize] : preferred;
  if (choice.case === "dynamicBatching") {
    choice.value.preferredBatchSize = sizes(choice.value.preferredBatchSize);
  } else if (choice.case === "sequenceBatching") {
    if (choice.value.maxSequenceIdleMicroseconds === 0n) choice.value.maxSequenceIdleMicroseconds = 1_000_000n;
    const strategy = choice.value.strategyChoice;
    if (strategy.case === "oldest") strategy.value.preferredBatchSize = sizes(strategy.value.preferredBatchSize);
  }
}

/** Backends for which Triton starts two CPU instances when no count is given. */
const twoCpuInstances = new Set(["onnxruntime", "tensorflow"]);

function completeInstanceGroups(message: ModelConfigMessage, { gpuCount, cpuBackends }: CompletionContext): void {
  const autoOnGpus = gpuCount > 0 && cpuBackends?.has(message.backend) !== true;
  const gpus = Array.from({ length: gpuCount }, (_, gpu) => gpu);
  // The default group has the model's name without a number. Configured groups without a name are numbered.
  if (message.instanceGroup.length === 0) {
    message.instanceGroup.push(create(ModelInstanceGroupSchema, { name: message.name }));
  }
  message.instanceGroup.forEach((group, index) => {
    if (group.name === "") group.name = `${message.name}_${index}`;
    if (group.kind === InstanceKind.AUTO) {
      group.kind = group.gpus.length > 0 || autoOnGpus ? InstanceKind.GPU : InstanceKind.CPU;
    }
    if (group.kind === InstanceKind.GPU && group.gpus.length === 0) group.gpus = gpus;
    if (group.count < 1) {
      group.count = group.kind === InstanceKind.CPU && twoCpuInstances.has(message.backend) ? 2 : 1;
    }
  });
}
