import { InferenceError } from "@galatea/base";
import { backendOfPlatform, knownPlatforms, platformBackends } from "./complete-backend.ts";
import { checkBatchTensors } from "./check-batch-tensors.ts";
import { checkEnsembleGraph } from "./check-ensemble-graph.ts";
import { checkFileNames } from "./check-file-names.ts";
import { checkLimits } from "./check-limits.ts";
import { checkDynamicBatching, checkSequenceBatching } from "./check-scheduling.ts";
import { checkTensors } from "./check-tensors.ts";
import { InstanceKind, type ModelConfigMessage } from "./message.ts";
import type { ModelConfig } from "./model-config.ts";
import { throwInvalidConfig } from "./invalid-config.ts";

type Check = (message: ModelConfigMessage) => void;

/** Checks of a configuration as found on disk, in Triton's order: the first failure is reported. */
const foundChecks: readonly Check[] = [
  checkIdentity,
  checkLimits,
  checkFileNames,
  checkBatchSize,
  checkVersionPolicy,
  checkDynamicBatching,
  checkSequenceBatching,
  checkResponseCache,
  checkEnsembleGraph,
];

/** Checks that run after the backend has completed the configuration. */
const completedChecks: readonly Check[] = [checkTensors, checkBatchTensors, checkInstanceGroups, checkWarmup];

const checks: readonly Check[] = [...foundChecks, ...completedChecks];

/**
 * Rejects a completed configuration that contradicts itself (INVALID_ARG with Triton's texts). Other models, files and devices are checked
 * elsewhere: `checkEnsembleModels`, loaders and backends.
 */
export function checkConfig(config: ModelConfig): void {
  for (const check of checks) check(config.message);
}

/** Returns the first error of every check, for `galatea model validate`. Tensors that a backend may still complete are not checked. */
export function configProblems(config: ModelConfig): readonly string[] {
  return checks.flatMap((check) => {
    try {
      check(config.message);
      return [];
    } catch (error) {
      if (error instanceof InferenceError) return [error.message];
      throw error;
    }
  });
}

/**
 * Rejects errors that no backend can complete. Triton finds these before it reads any version, and reports the model as not found; all
 * other errors belong to a version.
 */
export function checkFoundConfig(config: ModelConfig): void {
  for (const check of foundChecks) check(config.message);
}

function checkIdentity(message: ModelConfigMessage): void {
  const { name, platform, backend } = message;
  if (name === "") throwInvalidConfig("model configuration must specify 'name'");
  if (platform === "" && backend === "") throwInvalidConfig(`must specify 'platform' or 'backend' for '${name}'`);
  if (platform === "ensemble" && backend !== "") {
    throwInvalidConfig(`Ensemble model '${name}' must have platform type 'ensemble' and empty backend type`);
  }
  // Triton ignores the platform of a backend for which no platform exists.
  if (backend !== "" && !platformBackends.has(backend)) return;
  if (platform !== "" && !knownPlatforms.includes(platform))
    throwInvalidConfig(`unexpected platform type '${platform}' for ${name}`);
  const expected = backendOfPlatform(platform);
  if (expected !== undefined && expected !== backend) {
    throwInvalidConfig(`unexpected 'platform' and 'backend' pair, got:${platform}, ${backend}`);
  }
}

function checkBatchSize({ name, maxBatchSize }: ModelConfigMessage): void {
  if (maxBatchSize < 0) throwInvalidConfig(`'max_batch_size' must be non-negative value for ${name}`);
}

function checkVersionPolicy(message: ModelConfigMessage): void {
  const choice = message.versionPolicy?.policyChoice;
  const none = choice?.case === "latest" ? choice.value.numVersions === 0 : false;
  if (none)
    throwInvalidConfig(`at least one version must be available under the version policy of model '${message.name}'`);
}

function checkResponseCache(message: ModelConfigMessage): void {
  if (!message.responseCache?.enable) return;
  const say = (what: string): never =>
    throwInvalidConfig(
      `Response Cache does not currently support model ${message.name} with ${what}. Please disable the response cache.`,
    );
  if (message.schedulingChoice.case === "sequenceBatching") say("sequence batching scheduler");
  if (message.modelTransactionPolicy?.decoupled) say("'decoupled' transaction policy");
}

function checkInstanceGroups(message: ModelConfigMessage): void {
  if (message.platform === "ensemble") return;
  if (message.instanceGroup.length === 0)
    throwInvalidConfig(`must specify one or more 'instance group's for ${message.name}`);
  for (const group of message.instanceGroup) {
    const kind = InstanceKind[group.kind];
    if ((group.kind === InstanceKind.CPU || group.kind === InstanceKind.MODEL) && group.gpus.length > 0) {
      throwInvalidConfig(
        `instance group ${group.name} of model ${message.name} has kind KIND_${kind} but specifies one or more GPUs`,
      );
    }
  }
}

function checkWarmup(message: ModelConfigMessage): void {
  for (const sample of message.modelWarmup) {
    for (const [input, { dims }] of Object.entries(sample.inputs)) {
      if (dims.some((dim) => dim < 0n)) {
        throwInvalidConfig(`warmup setting expects all variable-size dimensions are specified for input '${input}'`);
      }
    }
  }
}
