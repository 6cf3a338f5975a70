import type { InstanceBudget } from "./instance-types.ts";
import type { ModelRecord, ProductionVariant, ServerlessConfig } from "./records-of-hosting.ts";

/** What takes the place of an instance type where a variant has none: in the sentences of quotas. */
export const serverlessType = "serverless";

const memoryStepMb = 1024;
const mebi = 2 ** 20;
/** SageMaker gives compute in proportion to memory, and does not say how much: here what its functions elsewhere have. */
const memoryMbPerVcpu = 1769;

/** What is wrong with a serverless configuration that its ranges do not say; null where it may be. */
export function serverlessRefusal({ MemorySizeInMB, MaxConcurrency, ProvisionedConcurrency }: ServerlessConfig) {
  if (MemorySizeInMB % memoryStepMb !== 0) {
    return `MemorySizeInMB of a serverless variant has to be one of 1024, 2048, 3072, 4096, 5120 and 6144, not ${MemorySizeInMB}.`;
  }
  if (ProvisionedConcurrency !== undefined && ProvisionedConcurrency > MaxConcurrency) {
    return `ProvisionedConcurrency (${ProvisionedConcurrency}) of a serverless variant cannot be more than its MaxConcurrency (${MaxConcurrency}).`;
  }
  return null;
}

/** Why SageMaker's serverless inference does not run such a model; null where it does. */
export function serverlessModelRefusal({ name, containers }: ModelRecord): string | null {
  if (containers.some(({ Mode: mode }) => mode === "MultiModel")) {
    return `Serverless Inference does not support multi-model endpoints: model "${name}" has a container in MultiModel mode.`;
  }
  if (containers.length > 1) {
    return `Serverless Inference does not support inference pipelines: model "${name}" has ${containers.length} containers.`;
  }
  return null;
}

/** What the one instance of a serverless variant may use. */
export function serverlessBudget({ MemorySizeInMB }: ServerlessConfig): InstanceBudget {
  return { vcpuCount: Math.ceil(MemorySizeInMB / memoryMbPerVcpu), memoryBytes: MemorySizeInMB * mebi };
}

/** What an instance of a variant may use; `budgetOf` tells of the types of instances. */
export function variantBudget(
  { ServerlessConfig: config, InstanceType: type }: ProductionVariant,
  budgetOf: (instanceType: string) => InstanceBudget,
): InstanceBudget {
  return config === undefined ? budgetOf(type) : serverlessBudget(config);
}
