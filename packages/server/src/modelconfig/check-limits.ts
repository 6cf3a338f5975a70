import type { ModelConfigMessage } from "./message.ts";
import { throwInvalidConfig } from "./invalid-config.ts";

/** Limits of numbers and lists in a configuration that cost memory or processes. Triton has no such limits. */
export const configLimits = {
  /** Number of instances of all instance groups together. */
  instances: 1024,
  priorityLevels: 1024,
  preferredBatchSizes: 1024,
  /** Limit of the number of inputs, and of the number of outputs. */
  tensors: 4096,
  dims: 32,
  ensembleSteps: 1024,
  versions: 4096,
} as const;

/** Checks the limits. Called before and after a backend completes the configuration. */
export function checkLimits(message: ModelConfigMessage): void {
  const atMost = (most: number, value: number | bigint, what: string): void => {
    if (value > most) throwInvalidConfig(`model '${message.name}' has ${value} ${what}; this server allows ${most}`);
  };
  const instances = message.instanceGroup.reduce((sum, { count }) => sum + Math.max(0, count), 0);
  atMost(configLimits.instances, instances, "instances");
  for (const [tensors, what] of [
    [message.input, "inputs"],
    [message.output, "outputs"],
  ] as const) {
    atMost(configLimits.tensors, tensors.length, what);
    for (const { name, dims, reshape } of tensors) {
      atMost(configLimits.dims, dims.length, `dims of '${name}'`);
      atMost(configLimits.dims, reshape?.shape.length ?? 0, `dims of the reshape of '${name}'`);
    }
  }
  const versions = message.versionPolicy?.policyChoice;
  if (versions?.case === "specific")
    atMost(configLimits.versions, versions.value.versions.length, "versions in its version policy");
  const scheduling = message.schedulingChoice;
  if (scheduling.case === "dynamicBatching") {
    atMost(configLimits.priorityLevels, scheduling.value.priorityLevels, "priority levels");
    atMost(configLimits.preferredBatchSizes, scheduling.value.preferredBatchSize.length, "preferred batch sizes");
  }
  if (scheduling.case === "ensembleScheduling")
    atMost(configLimits.ensembleSteps, scheduling.value.step.length, "ensemble steps");
}
