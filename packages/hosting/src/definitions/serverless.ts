import type { InstanceBudget } from "./instance-types.ts";
import type { ModelRecord, ProductionVariant, ServerlessConfig } from "./hosting-records.ts";

/** The text that replaces the instance type of serverless variants in quota errors. */
export const serverlessQuotaType = "serverless";

const memoryStepMb = 1024;
const mebi = 2 ** 20;
/** Memory per vCPU of a serverless instance. SageMaker does not publish its ratio; this is the ratio of AWS Lambda. */
const memoryMbPerVcpu = 1769;

/**
 * Returns the error text for an invalid serverless configuration; null if it is valid. The caller has checked the range
 * of each member before.
 */
export function serverlessConfigError({ MemorySizeInMB, MaxConcurrency, ProvisionedConcurrency }: ServerlessConfig) {
  if (MemorySizeInMB % memoryStepMb !== 0) {
    return `MemorySizeInMB of a serverless variant has to be one of 1024, 2048, 3072, 4096, 5120 and 6144, not ${MemorySizeInMB}.`;
  }
  if (ProvisionedConcurrency !== undefined && ProvisionedConcurrency > MaxConcurrency) {
    return `ProvisionedConcurrency (${ProvisionedConcurrency}) of a serverless variant cannot be more than its MaxConcurrency (${MaxConcurrency}).`;
  }
  return null;
}

/** Returns the error text if serverless inference does not support a model; null if it does. */
export function serverlessModelError({ name, containers }: ModelRecord): string | null {
  if (containers.some(({ Mode: mode }) => mode === "MultiModel")) {
    return `Serverless Inference does not support multi-model endpoints: model "${name}" has a container in MultiModel mode.`;
  }
  if (containers.length > 1) {
    return `Serverless Inference does not support inference pipelines: model "${name}" has ${containers.length} containers.`;
  }
  return null;
}

/** Returns the resources of a serverless variant's only instance. */
export function serverlessBudget({ MemorySizeInMB }: ServerlessConfig): InstanceBudget {
  return { vcpuCount: Math.ceil(MemorySizeInMB / memoryMbPerVcpu), memoryBytes: MemorySizeInMB * mebi };
}

/** Returns the resources of an instance of a variant; `budgetOf` returns the resources of an instance type. */
export function variantBudget(
  { ServerlessConfig: config, InstanceType: type }: ProductionVariant,
  budgetOf: (instanceType: string) => InstanceBudget,
): InstanceBudget {
  return config === undefined ? budgetOf(type) : serverlessBudget(config);
}
