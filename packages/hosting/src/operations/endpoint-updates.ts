import type { Concurrency, DeploymentConfig, Owner } from "../definitions/index.ts";
import {
  beginChange,
  footprintDifference,
  footprintBytes,
  isProduction,
  plannedFootprint,
  stepsTo,
  type Change,
  type EndpointEvent,
  type EndpointRecord,
  type Generation,
  type GroupSize,
  type VariantGroup,
} from "../endpoints/index.ts";
import { isShared, weightRefusal } from "../definitions/index.ts";
import { invalid } from "../definitions/index.ts";

/** A variant's property that an endpoint keeps when it gets another configuration. */
export type RetainedProperty = "DesiredInstanceCount" | "DesiredWeight" | "DataCaptureConfig";

export interface EndpointUpdate {
  readonly name: string;
  readonly configName: string;
  readonly owner: Owner;
  readonly deploymentConfig: DeploymentConfig | null;
  /** True to use the configuration of the last deployment. */
  readonly retainsDeployment: boolean;
  readonly retained: ReadonlySet<RetainedProperty>;
}

/** The requested change of a variant. */
export interface VariantSize {
  readonly variantName: string;
  readonly weight?: number;
  readonly instanceCount?: number;
  /** Only for a serverless variant. */
  readonly concurrency?: Partial<Concurrency>;
}

/** Returns a generation that keeps the retained sizes of variants with the same names. */
export function retaining(
  next: Generation,
  from: Generation,
  { retained }: Pick<EndpointUpdate, "retained">,
): Generation {
  const before = new Map(from.variants.map(({ plan, settled }) => [plan.variant.VariantName, settled]));
  const variants = next.variants.map((group): VariantGroup => {
    const kept = before.get(group.plan.variant.VariantName);
    if (kept === undefined) return group;
    const weight = retained.has("DesiredWeight") ? kept.weight : group.settled.weight;
    // A serverless variant, before or after the update, has no instance count to keep.
    const counts = kept.concurrency === undefined && group.settled.concurrency === undefined;
    const keeps = counts && retained.has("DesiredInstanceCount");
    const instanceCount = keeps ? kept.instanceCount : group.settled.instanceCount;
    return { ...group, settled: { ...group.settled, weight, instanceCount }, observed: { ...group.observed, weight } };
  });
  return { ...next, variants };
}

/** Returns the sizes of all variants with the requested changes. */
export function resized(
  { configName, variants, asyncInference }: Generation,
  asked: readonly VariantSize[],
): readonly GroupSize[] {
  const byName = new Map<string, VariantSize>();
  for (const each of asked) {
    const { variantName: name } = each;
    if (byName.has(name)) throw invalid(`The variant name "${name}" was non-unique within the request.`);
    byName.set(name, each);
  }
  const known = new Set(variants.map(({ plan }) => plan.variant.VariantName));
  const unknown = [...byName.keys()].filter((name) => !known.has(name));
  if (unknown.length > 0) {
    const names = unknown.map((name) => `"${name}"`).join(", ");
    throw invalid(`The variant name(s) ${names} is/are not present within endpoint configuration "${configName}".`);
  }
  const sizes = variants.map(({ plan, settled }) => {
    const { VariantName: name } = plan.variant;
    const wanted = byName.get(name) ?? { variantName: name };
    const { weight = settled.weight, instanceCount = settled.instanceCount } = wanted;
    const refusal = weightRefusal(name, weight);
    if (refusal !== null) throw invalid(refusal);
    if (settled.concurrency !== undefined) return resizedServerless(settled.concurrency, { weight, wanted });
    if (wanted.concurrency !== undefined) {
      throw invalid(`ServerlessUpdateConfig is for serverless variants; variant "${name}" has instances.`);
    }
    // A queue needs at least one instance, too.
    if (instanceCount === 0 && asyncInference === undefined && !isShared(plan.variant)) {
      throw invalid(`DesiredInstanceCount of variant "${name}" has to be 1 or more.`);
    }
    return { weight, instanceCount };
  });
  if (sizes.every(({ weight }, index) => weight === 0 || variants[index]?.plan.isShadow === true))
    throw invalid("At least one production variant needs a weight above zero.");
  return sizes;
}

function resizedServerless(
  now: Concurrency,
  { weight, wanted }: { readonly weight: number; readonly wanted: VariantSize },
): GroupSize {
  const { variantName, instanceCount } = wanted;
  if (instanceCount !== undefined) {
    throw invalid(
      `Variant "${variantName}" is serverless and has no DesiredInstanceCount; give a ServerlessUpdateConfig.`,
    );
  }
  const { max, provisioned } = { ...now, ...wanted.concurrency };
  if (provisioned > max) {
    throw invalid(
      `ProvisionedConcurrency (${provisioned}) of variant "${variantName}" cannot be more than its MaxConcurrency (${max}).`,
    );
  }
  return { weight, instanceCount: provisioned > 0 ? 1 : 0, concurrency: { max, provisioned } };
}

/** Returns the number of instances that share callers' requests. */
export function productionCount({ variants }: Generation): number {
  return variants.filter(isProduction).reduce((sum, { settled }) => sum + settled.instanceCount, 0);
}

/** Returns the event that updates an endpoint to another generation. */
export function updateTo(
  now: EndpointRecord,
  next: Generation,
  { deploymentConfig, nowMs }: { readonly deploymentConfig: DeploymentConfig | null; readonly nowMs: number },
): EndpointEvent {
  const change = beginChange(nowMs, stepsTo(now, next, deploymentConfig), limitsOf(deploymentConfig, nowMs));
  return { kind: "update", next, change, deploymentConfig };
}

/** Returns advice on an update that needs less capacity at once; null if there is none. */
export function smallerUpdate(updating: EndpointRecord): string | null {
  const { generations, deploymentConfig } = updating;
  const { RollingUpdatePolicy: rolling } = deploymentConfig ?? {};
  const next = generations.at(-1);
  if (next === undefined || next.variants.some(({ settled }) => settled.concurrency !== undefined)) return null;
  if (rolling === undefined) {
    if (productionCount(next) < 2) return null;
    return (
      "The update runs both fleets at once: with a MaximumBatchSize and a RollbackMaximumBatchSize of a RollingUpdatePolicy it adds at " +
      "most one batch of instances."
    );
  }
  if (rolling.RollbackMaximumBatchSize !== undefined) return null;
  const policy = { ...rolling, RollbackMaximumBatchSize: rolling.MaximumBatchSize };
  const back = { ...deploymentConfig, RollingUpdatePolicy: policy };
  const less = footprintDifference(
    plannedFootprint(updating),
    plannedFootprint({ ...updating, deploymentConfig: back }),
  );
  if (less.instanceCount === 0) return null;
  return (
    "Without a RollbackMaximumBatchSize a roll-back starts all old instances while the new ones still run: with one that is as large as the " +
    `MaximumBatchSize the update would need ${less.instanceCount} instances and ${Math.floor(footprintBytes(less) / 2 ** 20)} MiB less.`
  );
}

/** Returns the instance type for quota errors. */
export const typeOf = (generation: Generation | undefined): string =>
  generation?.variants[0]?.plan.variant.InstanceType ?? "";

export function alarmsOf(config: DeploymentConfig | null): readonly string[] {
  return (config?.AutoRollbackConfiguration?.Alarms ?? []).flatMap(({ AlarmName: name }) => name ?? []);
}

/** Returns the deadline and the alarms that can end an update early. */
function limitsOf(config: DeploymentConfig | null, nowMs: number): Pick<Change, "deadlineMs" | "alarms"> {
  const seconds =
    config?.BlueGreenUpdatePolicy?.MaximumExecutionTimeoutInSeconds ??
    config?.RollingUpdatePolicy?.MaximumExecutionTimeoutInSeconds;
  return { deadlineMs: seconds === undefined ? null : nowMs + seconds * 1000, alarms: alarmsOf(config) };
}
