import type { InstanceBudget } from "./instance-types.ts";
import type { ModelRecord, ProductionVariant, ServerlessConfig } from "./records-of-hosting.ts";

/** The name in quota errors for variants without an instance type. */
export const serverlessType = "serverless";

const memoryStepMb = 1024;
const mebi = 2 ** 20;
/** SageMaker gives compute in proportion to memory, without saying how much: this is the ratio of AWS Lambda. */
const memoryMbPerVcpu = 1769;

/** Returns the error in a serverless configuration that its ranges do not express; null if it is valid. */
export function serverlessRefusal({ MemorySizeInMB, MaxConcurrency, ProvisionedConcurrency }: ServerlessConfig) {
  if (MemorySizeInMB % memoryStepMb !== 0) {
    return `MemorySizeInMB of a serverless variant has to be one of 1024, 2048, 3072, 4096, 5120 and 6144, not ${MemorySizeInMB}.`;
  }
  if (ProvisionedConcurrency !== undefined && ProvisionedConcurrency > MaxConcurrency) {
    return `ProvisionedConcurrency (${ProvisionedConcurrency}) of a serverless variant cannot be more than its MaxConcurrency (${MaxConcurrency}).`;
  }
  return null;
}

/** Returns the reason that serverless inference cannot run a model; null if it can. */
export function serverlessModelRefusal({ name, containers }: ModelRecord): string | null {
  if (containers.some(({ Mode: mode }) => mode === "MultiModel")) {
    return `Serverless Inference does not support multi-model endpoints: model "${name}" has a container in MultiModel mode.`;
  }
  if (containers.length > 1) {
    return `Serverless Inference does not support inference pipelines: model "${name}" has ${containers.length} containers.`;
  }
  return null;
}

/** Returns the resources of the one instance of a serverless variant. */
export function serverlessBudget({ MemorySizeInMB }: ServerlessConfig): InstanceBudget {
  return { vcpuCount: Math.ceil(MemorySizeInMB / memoryMbPerVcpu), memoryBytes: MemorySizeInMB * mebi };
}

/** Returns the resources of an instance of a variant; `budgetOf` knows the instance types. */
export function variantBudget(
  { ServerlessConfig: config, InstanceType: type }: ProductionVariant,
  budgetOf: (instanceType: string) => InstanceBudget,
): InstanceBudget {
  return config === undefined ? budgetOf(type) : serverlessBudget(config);
}
