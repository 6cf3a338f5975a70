import { unreachable } from "@galatea/base";
import type {
  AsyncInferenceConfig,
  ServerlessConcurrency,
  DataCaptureConfig,
  DeploymentConfig,
  Owner,
  VariantPlan,
} from "../definitions/index.ts";
import type { PlacementKey } from "./model-rank.ts";
import { containerBaseBytes, guaranteedModelBytes } from "./planned-containers.ts";

/** The size of a variant: its instance count, its weight in request routing, and its serverless concurrency. */
export interface GroupSize {
  readonly instanceCount: number;
  /** Weight for request routing, relative to the other variants of the same generation. */
  readonly weight: number;
  /** Concurrency of a serverless variant; absent for other variants. */
  readonly concurrency?: ServerlessConcurrency;
}

/** A variant of one generation, with its instances. */
export interface VariantGroup {
  readonly plan: VariantPlan;
  /** The size after the last completed change, to which a rollback returns. */
  readonly settled: GroupSize;
  /** The size after the last completed step of a change in progress. */
  readonly observed: GroupSize;
}

/** A generation of an endpoint's instances: each creation and each update starts a new one from an endpoint configuration. */
export interface Generation {
  readonly number: number;
  readonly configName: string;
  /** Share of the endpoint's requests, from 0 to 1. The shares of all generations add up to 1. */
  readonly trafficShare: number;
  readonly variants: readonly VariantGroup[];
  /** Present if the endpoint is asynchronous. */
  readonly asyncInference?: AsyncInferenceConfig;
  /** Present if the endpoint configuration has a DataCaptureConfig. */
  readonly dataCapture?: DataCaptureConfig;
}

/** An endpoint configuration with its models: the input of a new generation. */
export interface PlannedConfig {
  readonly configName: string;
  readonly plans: readonly VariantPlan[];
  readonly asyncInference?: AsyncInferenceConfig;
  readonly dataCapture?: DataCaptureConfig;
}

/** The traffic share and the variant sizes of one generation in a step of a change. */
export interface StepGeneration {
  readonly number: number;
  readonly trafficShare: number;
  readonly sizes: readonly GroupSize[];
}

/**
 * A step of an endpoint change. First, instances that the step no longer contains are stopped. When the step's additional
 * instances are in service, its traffic shares and weights are applied. Then the step bakes for `bakeMs`.
 */
export interface ChangeStep {
  /** The generations of the step. All other generations are stopped when the step begins. */
  readonly generations: readonly StepGeneration[];
  readonly bakeMs: number;
}

/** A change of an endpoint in progress: its steps, and the index of the current one. */
export interface EndpointChange {
  readonly startedMs: number;
  /** Epoch time at which an unfinished change is rolled back; null for no limit. */
  readonly deadlineMs: number | null;
  readonly steps: readonly ChangeStep[];
  readonly stepIndex: number;
  /** Epoch time at which the step's baking period ends; null until the step's instances are in service. */
  readonly bakesUntilMs: number | null;
  /** Names of the CloudWatch alarms that cause a rollback when they are in ALARM. */
  readonly alarms: readonly string[];
}

/** The status of an endpoint, with SageMaker's status names in `at`. */
export type EndpointState =
  | { readonly at: "Creating" }
  | { readonly at: "InService"; readonly lastFailure: string | null }
  | { readonly at: "Updating"; readonly change: EndpointChange }
  | { readonly at: "RollingBack"; readonly reason: string; readonly change: EndpointChange }
  /** A rollback has failed. The instances that are in service at this point continue to serve requests. */
  | { readonly at: "UpdateRollbackFailed"; readonly reason: string }
  /** The endpoint was stopped: no instance runs. */
  | { readonly at: "OutOfService" }
  | { readonly at: "Deleting" }
  | { readonly at: "Failed"; readonly reason: string };

export interface EndpointRecord {
  readonly name: string;
  readonly arn: string;
  readonly createdMs: number;
  readonly modifiedMs: number;
  readonly owner: Owner;
  /** Secret key of the hash that places models on instances. */
  readonly placementKey: PlacementKey;
  readonly state: EndpointState;
  /** The first generation is the current one, to which a rollback returns. The others are being added or removed. */
  readonly generations: readonly [Generation, ...Generation[]];
  /** DeploymentConfig of the last update that had one; null if there is none. */
  readonly deploymentConfig: DeploymentConfig | null;
}

/** Returns the record of a new endpoint with status Creating, before any instance has started. */
export function newEndpointRecord(
  created: Pick<EndpointRecord, "name" | "arn" | "owner" | "placementKey" | "deploymentConfig">,
  generation: Generation,
  nowMs: number,
): EndpointRecord {
  return { ...created, createdMs: nowMs, modifiedMs: nowMs, state: { at: "Creating" }, generations: [generation] };
}

/** Returns a change at its first step. It has no deadline and no alarms unless they are given. */
export function newEndpointChange(
  startedMs: number,
  steps: readonly ChangeStep[],
  more: Partial<Pick<EndpointChange, "deadlineMs" | "alarms">> = {},
): EndpointChange {
  return { startedMs, deadlineMs: null, steps, stepIndex: 0, bakesUntilMs: null, alarms: [], ...more };
}

/** Returns a new generation for a configuration, before any of its instances has started. */
export function newGeneration(number: number, { plans, ...config }: PlannedConfig): Generation {
  const variants = plans.map((plan): VariantGroup => {
    const {
      InitialInstanceCount: instanceCount,
      InitialVariantWeight: weight,
      ServerlessConfig: serverless,
    } = plan.variant;
    const { MaxConcurrency: max = 0, ProvisionedConcurrency: provisioned = 0 } = serverless ?? {};
    const concurrency = serverless === undefined ? {} : { concurrency: { max, provisioned } };
    return {
      plan,
      settled: { instanceCount, weight, ...concurrency },
      observed: { instanceCount: 0, weight, ...concurrency },
    };
  });
  return { number, ...config, trafficShare: 0, variants };
}

/** Returns a generation whose change has completed: the observed sizes equal the settled ones. */
export function stableGeneration(generation: Generation, trafficShare = 1): Generation {
  const variants = generation.variants.map((group) => ({ ...group, observed: group.settled }));
  return { ...generation, trafficShare, variants };
}

/** Returns the key of a variant of a generation, which is unique within the endpoint. */
export const groupKey = (generation: number, variantName: string) => `${generation} ${variantName}`;

/** Returns whether a variant serves callers; a shadow variant does not. */
export const isProductionGroup = ({ plan }: Pick<VariantGroup, "plan">): boolean => plan.isShadow !== true;

/** A row of an endpoint's routing table: the share of requests that one variant of one generation gets. */
export interface Route {
  readonly generation: number;
  readonly variantName: string;
  /** Share of the requests that name no variant. Zero if the variant gets only requests that name it. */
  readonly weight: number;
  /** Share of the requests that name the variant. */
  readonly trafficShare: number;
}

/** Returns the routing table of an endpoint. */
export function routingTable({ generations }: Pick<EndpointRecord, "generations">): readonly Route[] {
  return generations.flatMap(({ number, trafficShare, variants: all }) => {
    if (trafficShare === 0) return [];
    const variants = all.filter(isProductionGroup);
    // Weights are divided by the largest one, because a sum of very large weights would be infinite.
    const largest = Math.max(...variants.map(({ observed }) => observed.weight));
    const total = variants.reduce((sum, { observed }) => sum + observed.weight / largest, 0);
    return variants.map(({ plan, observed }) => ({
      generation: number,
      variantName: plan.variant.VariantName,
      weight: largest === 0 ? 0 : (trafficShare * (observed.weight / largest)) / total,
      trafficShare,
    }));
  });
}

/**
 * The resources that an endpoint, a component or a transform job uses or will use. Each container is a separate server
 * process.
 */
export interface Footprint {
  readonly instanceCount: number;
  /** Number of containers of all instances. */
  readonly containerCount: number;
  /** Bytes of memory that are guaranteed to the models. */
  readonly modelBytes: number;
  /** Number of instances or component copies by the bytes of memory that each uses on its node; absent if there are none. */
  readonly countsByBytes?: ReadonlyMap<number, number>;
}

export const emptyFootprint: Footprint = { instanceCount: 0, containerCount: 0, modelBytes: 0 };

export function groupsFootprint(
  groups: readonly { readonly plan: VariantPlan; readonly instanceCount: number }[],
): Footprint {
  let [instances, containers, modelBytes] = [0, 0, 0];
  const countsByBytes = new Map<number, number>();
  for (const { plan, instanceCount } of groups) {
    const one = { containerCount: plan.model.containers.length, modelBytes: guaranteedModelBytes(plan) };
    instances += instanceCount;
    containers += instanceCount * one.containerCount;
    modelBytes += instanceCount * one.modelBytes;
    const bytes = footprintBytes(one);
    countsByBytes.set(bytes, (countsByBytes.get(bytes) ?? 0) + instanceCount);
  }
  return { instanceCount: instances, containerCount: containers, modelBytes, countsByBytes };
}

/** Returns the bytes of node memory that a footprint uses. */
export const footprintBytes = ({ containerCount, modelBytes }: Omit<Footprint, "instanceCount">): number =>
  containerCount * containerBaseBytes + modelBytes;

/** Returns the difference of two footprints. Fields that would be negative are zero. */
export function footprintDifference(one: Footprint, other: Footprint): Footprint {
  const more = [...(one.countsByBytes ?? [])].map(
    ([bytes, count]) => [bytes, count - (other.countsByBytes?.get(bytes) ?? 0)] as const,
  );
  return {
    countsByBytes: new Map(more.filter(([, count]) => count > 0)),
    instanceCount: Math.max(0, one.instanceCount - other.instanceCount),
    containerCount: Math.max(0, one.containerCount - other.containerCount),
    modelBytes: Math.max(0, one.modelBytes - other.modelBytes),
  };
}

export function failureReason(state: EndpointState): string | null {
  switch (state.at) {
    case "Failed":
    case "RollingBack":
    case "UpdateRollbackFailed":
      return state.reason;
    case "InService":
      return state.lastFailure;
    case "Creating":
    case "Updating":
    case "OutOfService":
    case "Deleting":
      return null;
    default:
      return unreachable(state);
  }
}

/** Returns whether an endpoint is being changed: the reconciler will move it to another state. */
export function isTransientState({ at }: Pick<EndpointState, "at">): boolean {
  return at === "Creating" || at === "Updating" || at === "RollingBack" || at === "Deleting";
}
