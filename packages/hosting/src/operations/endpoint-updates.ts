import type { ServerlessConcurrency, DeploymentConfig, Owner } from "../definitions/index.ts";
import {
  newEndpointChange,
  footprintDifference,
  footprintBytes,
  isProductionGroup,
  peakFootprint,
  stepsToGeneration,
  type EndpointChange,
  type EndpointEvent,
  type EndpointRecord,
  type Generation,
  type GroupSize,
  type VariantGroup,
} from "../endpoints/index.ts";
import { isComponentVariant, variantWeightError } from "../definitions/index.ts";
import { validationError } from "../definitions/index.ts";

/** SageMaker's VariantPropertyType: a property that a variant keeps when its endpoint gets another configuration. */
export type RetainedProperty = "DesiredInstanceCount" | "DesiredWeight" | "DataCaptureConfig";

export interface EndpointUpdate {
  readonly name: string;
  readonly configName: string;
  readonly owner: Owner;
  readonly deploymentConfig: DeploymentConfig | null;
  /** True to use the DeploymentConfig of the last update (RetainDeploymentConfig). */
  readonly retainsDeployment: boolean;
  readonly retained: ReadonlySet<RetainedProperty>;
}

/** A requested change of a variant's weight, instance count or concurrency; absent fields stay unchanged. */
export interface VariantSizeChange {
  readonly variantName: string;
  readonly weight?: number;
  readonly instanceCount?: number;
  /** New concurrency of a serverless variant. */
  readonly concurrency?: Partial<ServerlessConcurrency>;
}

/**
 * Returns the next generation, in which each variant keeps the retained properties of the current variant with the same
 * name.
 */
export function keepVariantProperties(
  next: Generation,
  from: Generation,
  { retained }: Pick<EndpointUpdate, "retained">,
): Generation {
  const before = new Map(from.variants.map(({ plan, settled }) => [plan.variant.VariantName, settled]));
  const variants = next.variants.map((group): VariantGroup => {
    const kept = before.get(group.plan.variant.VariantName);
    if (kept === undefined) return group;
    const weight = retained.has("DesiredWeight") ? kept.weight : group.settled.weight;
    // An instance count can be kept only if the variant is not serverless, neither before nor after the update.
    const counts = kept.concurrency === undefined && group.settled.concurrency === undefined;
    const keeps = counts && retained.has("DesiredInstanceCount");
    const instanceCount = keeps ? kept.instanceCount : group.settled.instanceCount;
    return { ...group, settled: { ...group.settled, weight, instanceCount }, observed: { ...group.observed, weight } };
  });
  return { ...next, variants };
}

/** Returns the sizes of all variants after the requested changes. Throws if a change is invalid. */
export function applyVariantSizes(
  { configName, variants, asyncInference }: Generation,
  changes: readonly VariantSizeChange[],
): readonly GroupSize[] {
  const byName = new Map<string, VariantSizeChange>();
  for (const each of changes) {
    const { variantName: name } = each;
    if (byName.has(name)) throw validationError(`The variant name "${name}" was non-unique within the request.`);
    byName.set(name, each);
  }
  const known = new Set(variants.map(({ plan }) => plan.variant.VariantName));
  const unknown = [...byName.keys()].filter((name) => !known.has(name));
  if (unknown.length > 0) {
    const names = unknown.map((name) => `"${name}"`).join(", ");
    throw validationError(
      `The variant name(s) ${names} is/are not present within endpoint configuration "${configName}".`,
    );
  }
  const sizes = variants.map(({ plan, settled }) => {
    const { VariantName: name } = plan.variant;
    const desired = byName.get(name) ?? { variantName: name };
    const { weight = settled.weight, instanceCount = settled.instanceCount } = desired;
    const refusal = variantWeightError(name, weight);
    if (refusal !== null) throw validationError(refusal);
    if (settled.concurrency !== undefined) return changedConcurrency(settled.concurrency, { weight, desired: desired });
    if (desired.concurrency !== undefined) {
      throw validationError(`ServerlessUpdateConfig is for serverless variants; variant "${name}" has instances.`);
    }
    // Only asynchronous endpoints and variants for inference components can have no instances.
    if (instanceCount === 0 && asyncInference === undefined && !isComponentVariant(plan.variant)) {
      throw validationError(`DesiredInstanceCount of variant "${name}" must be at least 1.`);
    }
    return { weight, instanceCount };
  });
  if (sizes.every(({ weight }, index) => weight === 0 || variants[index]?.plan.isShadow === true))
    throw validationError("At least one production variant needs a weight above zero.");
  return sizes;
}

function changedConcurrency(
  now: ServerlessConcurrency,
  { weight, desired }: { readonly weight: number; readonly desired: VariantSizeChange },
): GroupSize {
  const { variantName, instanceCount } = desired;
  if (instanceCount !== undefined) {
    throw validationError(
      `Variant "${variantName}" is serverless and has no DesiredInstanceCount; give a ServerlessUpdateConfig.`,
    );
  }
  const { max, provisioned } = { ...now, ...desired.concurrency };
  if (provisioned > max) {
    throw validationError(
      `ProvisionedConcurrency (${provisioned}) of variant "${variantName}" cannot be more than its MaxConcurrency (${max}).`,
    );
  }
  return { weight, instanceCount: provisioned > 0 ? 1 : 0, concurrency: { max, provisioned } };
}

/** Returns the number of instances of production variants; shadow variants are excluded. */
export function productionInstanceCount({ variants }: Generation): number {
  return variants.filter(isProductionGroup).reduce((sum, { settled }) => sum + settled.instanceCount, 0);
}

/** Returns the event that starts the update of an endpoint to another generation. */
export function newUpdateEvent(
  now: EndpointRecord,
  next: Generation,
  { deploymentConfig, nowMs }: { readonly deploymentConfig: DeploymentConfig | null; readonly nowMs: number },
): EndpointEvent {
  const change = newEndpointChange(
    nowMs,
    stepsToGeneration(now, next, deploymentConfig),
    limitsOf(deploymentConfig, nowMs),
  );
  return { kind: "update", next, change, deploymentConfig };
}

/** Returns advice for a DeploymentConfig that needs fewer additional instances; null if there is none. */
export function smallerUpdateAdvice(updating: EndpointRecord): string | null {
  const { generations, deploymentConfig } = updating;
  const { RollingUpdatePolicy: rolling } = deploymentConfig ?? {};
  const next = generations.at(-1);
  if (next === undefined || next.variants.some(({ settled }) => settled.concurrency !== undefined)) return null;
  if (rolling === undefined) {
    if (productionInstanceCount(next) < 2) return null;
    return (
      "The update runs both fleets at once: with a MaximumBatchSize and a RollbackMaximumBatchSize of a RollingUpdatePolicy it adds at " +
      "most one batch of instances."
    );
  }
  if (rolling.RollbackMaximumBatchSize !== undefined) return null;
  const policy = { ...rolling, RollbackMaximumBatchSize: rolling.MaximumBatchSize };
  const back = { ...deploymentConfig, RollingUpdatePolicy: policy };
  const less = footprintDifference(peakFootprint(updating), peakFootprint({ ...updating, deploymentConfig: back }));
  if (less.instanceCount === 0) return null;
  return (
    "Without a RollbackMaximumBatchSize a roll-back starts all old instances while the new ones still run: with one that is as large as the " +
    `MaximumBatchSize the update would need ${less.instanceCount} instances and ${Math.floor(footprintBytes(less) / 2 ** 20)} MiB less.`
  );
}

/** Returns the instance type to name in quota errors: the type of the generation's first variant. */
export const quotaInstanceType = (generation: Generation | undefined): string =>
  generation?.variants[0]?.plan.variant.InstanceType ?? "";

export function rollbackAlarmNames(config: DeploymentConfig | null): readonly string[] {
  return (config?.AutoRollbackConfiguration?.Alarms ?? []).flatMap(({ AlarmName: name }) => name ?? []);
}

/** Returns the deadline and the alarms that cause a rollback of an update. */
function limitsOf(config: DeploymentConfig | null, nowMs: number): Pick<EndpointChange, "deadlineMs" | "alarms"> {
  const seconds =
    config?.BlueGreenUpdatePolicy?.MaximumExecutionTimeoutInSeconds ??
    config?.RollingUpdatePolicy?.MaximumExecutionTimeoutInSeconds;
  return { deadlineMs: seconds === undefined ? null : nowMs + seconds * 1000, alarms: rollbackAlarmNames(config) };
}
