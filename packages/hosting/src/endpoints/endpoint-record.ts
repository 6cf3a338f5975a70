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
import { containerOwnBytes, guaranteedModelBytes } from "./planned-containers.ts";

/** The desired or observed instances and traffic of a variant. */
export interface GroupSize {
  readonly instanceCount: number;
  /** Relative to the other variants of its generation. */
  readonly weight: number;
  /** Only for a serverless variant, which has an instance while it is kept warm, and otherwise on demand. */
  readonly concurrency?: ServerlessConcurrency;
}

/** The instances of a variant that one configuration has created. */
export interface VariantGroup {
  readonly plan: VariantPlan;
  /** The size outside of transitions; the target of a rollback. */
  readonly settled: GroupSize;
  /** The size that the last completed step has reached. */
  readonly observed: GroupSize;
}

/** The result of an endpoint's creation or of one update. */
export interface Generation {
  readonly number: number;
  readonly configName: string;
  /** Share of the endpoint's requests; the shares of all generations add up to 1. */
  readonly trafficShare: number;
  readonly variants: readonly VariantGroup[];
  /** Absent for synchronous endpoints. */
  readonly asyncInference?: AsyncInferenceConfig;
  /** Absent where the configuration does not set it. */
  readonly dataCapture?: DataCaptureConfig;
}

/** The source of a generation: a configuration with its models. */
export interface PlannedConfig {
  readonly configName: string;
  readonly plans: readonly VariantPlan[];
  readonly asyncInference?: AsyncInferenceConfig;
  readonly dataCapture?: DataCaptureConfig;
}

/** A generation's sizes in a step, in the order of its variants. */
export interface StepGeneration {
  readonly number: number;
  readonly trafficShare: number;
  readonly sizes: readonly GroupSize[];
}

/**
 * A step of a change. It begins by stopping the instances that the step before had in excess; once its additional
 * instances are in service its shares and weights apply, and then it bakes.
 */
export interface ChangeStep {
  /** Generations that are missing here are stopped when the step begins. */
  readonly generations: readonly StepGeneration[];
  readonly bakeMs: number;
}

/** A change in progress: its steps, and the current one. */
export interface Change {
  readonly startedMs: number;
  /** Time at which an unfinished change is rolled back; null for no limit. */
  readonly deadlineMs: number | null;
  readonly steps: readonly ChangeStep[];
  readonly stepIndex: number;
  /** Null until the step's instances are in service. */
  readonly bakesUntilMs: number | null;
  /** Alarms that roll the change back when in ALARM. */
  readonly alarms: readonly string[];
}

/** SageMaker's endpoint statuses, each with its own fields. Statuses that an endpoint never enters here are missing. */
export type EndpointState =
  | { readonly at: "Creating" }
  | { readonly at: "InService"; readonly lastFailure: string | null }
  | { readonly at: "Updating"; readonly change: Change }
  | { readonly at: "RollingBack"; readonly reason: string; readonly change: Change }
  /** The instances that the rollback has reached still answer. */
  | { readonly at: "UpdateRollbackFailed"; readonly reason: string }
  /** Stopped; no instance runs. */
  | { readonly at: "OutOfService" }
  | { readonly at: "Deleting" }
  | { readonly at: "Failed"; readonly reason: string };

export interface EndpointRecord {
  readonly name: string;
  readonly arn: string;
  readonly createdMs: number;
  readonly modifiedMs: number;
  readonly owner: Owner;
  /** The key by which models are placed on instances; it is secret. */
  readonly placementKey: PlacementKey;
  readonly state: EndpointState;
  /** The first is the current generation, to which a rollback returns; others are being added or removed. */
  readonly generations: readonly [Generation, ...Generation[]];
  /** The configuration of the last deployment that had one. */
  readonly deploymentConfig: DeploymentConfig | null;
}

/** Returns the record of an endpoint without running instances. */
export function newEndpoint(
  made: Pick<EndpointRecord, "name" | "arn" | "owner" | "placementKey" | "deploymentConfig">,
  generation: Generation,
  nowMs: number,
): EndpointRecord {
  return { ...made, createdMs: nowMs, modifiedMs: nowMs, state: { at: "Creating" }, generations: [generation] };
}

/** Returns a change at its first step, without limit and alarms unless given. */
export function beginChange(
  startedMs: number,
  steps: readonly ChangeStep[],
  more: Partial<Pick<Change, "deadlineMs" | "alarms">> = {},
): Change {
  return { startedMs, deadlineMs: null, steps, stepIndex: 0, bakesUntilMs: null, alarms: [], ...more };
}

/** Returns the generation of a configuration, without running instances. */
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

/** Returns a generation whose observed sizes are its settled ones. */
export function stableGeneration(generation: Generation, trafficShare = 1): Generation {
  const variants = generation.variants.map((group) => ({ ...group, observed: group.settled }));
  return { ...generation, trafficShare, variants };
}

/** Returns the key of a group among the groups of an endpoint. */
export const groupKey = (generation: number, variantName: string) => `${generation} ${variantName}`;

/** Returns whether a group's responses go to callers; a shadow's do not. */
export const isProduction = ({ plan }: Pick<VariantGroup, "plan">): boolean => plan.isShadow !== true;

/** A row of the routing table: a group's share of the endpoint's requests. */
export interface Route {
  readonly generation: number;
  readonly variantName: string;
  /** Zero for a variant that gets only the requests that name it. */
  readonly weight: number;
  /** Its generation's share of the requests that name the variant. */
  readonly trafficShare: number;
}

/** Returns the routing table of a record. */
export function routesOf({ generations }: Pick<EndpointRecord, "generations">): readonly Route[] {
  return generations.flatMap(({ number, trafficShare, variants: all }) => {
    if (trafficShare === 0) return [];
    const variants = all.filter(isProduction);
    // Relative to the largest weight, because sums of very large weights are infinite.
    const largest = Math.max(...variants.map(({ observed }) => observed.weight));
    const whole = variants.reduce((sum, { observed }) => sum + observed.weight / largest, 0);
    return variants.map(({ plan, observed }) => ({
      generation: number,
      variantName: plan.variant.VariantName,
      weight: largest === 0 ? 0 : (trafficShare * (observed.weight / largest)) / whole,
      trafficShare,
    }));
  });
}

/**
 * The instances and memory that an endpoint or a transform job uses or is to use. Each container is a server with
 * processes of its own.
 */
export interface Footprint {
  readonly instanceCount: number;
  /** Sum over all instances. */
  readonly containerCount: number;
  /** Guaranteed bytes of memory of their models. */
  readonly modelBytes: number;
  /** The number of instances, or of copies of a component, by the memory that each takes of its node; absent for none. */
  readonly countsByBytes?: ReadonlyMap<number, number>;
}

export const noFootprint: Footprint = { instanceCount: 0, containerCount: 0, modelBytes: 0 };

export function footprintOf(
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

/** Returns the bytes that a footprint takes of the nodes' memory. */
export const footprintBytes = ({ containerCount, modelBytes }: Omit<Footprint, "instanceCount">): number =>
  containerCount * containerOwnBytes + modelBytes;

/** Returns how much larger one footprint is than another; zero where it is smaller. */
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

/** Returns whether a state ends by itself. */
export function isTransient({ at }: Pick<EndpointState, "at">): boolean {
  return at === "Creating" || at === "Updating" || at === "RollingBack" || at === "Deleting";
}
