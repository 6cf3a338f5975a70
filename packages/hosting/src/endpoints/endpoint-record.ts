import { unreachable } from "@galatea/base";
import type {
  AsyncInferenceConfig,
  Concurrency,
  DataCaptureConfig,
  DeploymentConfig,
  Owner,
  VariantPlan,
} from "../definitions/index.ts";
import type { PlacementKey } from "./model-rank.ts";
import { containerOwnBytes, guaranteedModelBytes } from "./planned-containers.ts";

/** What of a variant's instances and traffic is asked for, or is so. */
export interface GroupSize {
  readonly instanceCount: number;
  /** Beside those of the other variants of its generation. */
  readonly weight: number;
  /** Of a serverless variant, which has an instance while it is kept warm, and otherwise when requests come. */
  readonly concurrency?: Concurrency;
}

/** The instances of a variant that were made of one configuration. */
export interface VariantGroup {
  readonly plan: VariantPlan;
  /** What it has while nothing moves; a roll-back goes back to it. */
  readonly settled: GroupSize;
  /** What the last step that was made has come to. */
  readonly observed: GroupSize;
}

/** What an endpoint was once created with or updated to. */
export interface Generation {
  readonly number: number;
  readonly configName: string;
  /** Of the endpoint's requests; 1 over all generations together. */
  readonly trafficShare: number;
  readonly variants: readonly VariantGroup[];
  /** Absent where requests do not wait in a queue. */
  readonly asyncInference?: AsyncInferenceConfig;
  /** Absent where its configuration says nothing of it. */
  readonly dataCapture?: DataCaptureConfig;
}

/** What a generation is made of: a configuration with its models. */
export interface PlannedConfig {
  readonly configName: string;
  readonly plans: readonly VariantPlan[];
  readonly asyncInference?: AsyncInferenceConfig;
  readonly dataCapture?: DataCaptureConfig;
}

/** A generation in a step: its sizes in the order of its variants. */
export interface StepGeneration {
  readonly number: number;
  readonly trafficShare: number;
  readonly sizes: readonly GroupSize[];
}

/**
 * A step of a change. It begins with the end of what it has fewer of than the step before; when what it has more of is in service its
 * shares and weights hold, and then it bakes.
 */
export interface ChangeStep {
  /** Others end as it begins. */
  readonly generations: readonly StepGeneration[];
  readonly bakeMs: number;
}

/** How an endpoint gets from what it runs to something else, and how far it is. */
export interface Change {
  readonly startedMs: number;
  /** Not over until then, it is rolled back; null where it may take any time. */
  readonly deadlineMs: number | null;
  readonly steps: readonly ChangeStep[];
  readonly stepIndex: number;
  /** Null until the step has what it wants in service. */
  readonly bakesUntilMs: number | null;
  /** Each one rolls it back that is in alarm. */
  readonly alarms: readonly string[];
}

/** SageMaker's endpoint statuses, each with what only it has. Statuses we never enter are not among them. */
export type EndpointState =
  | { readonly at: "Creating" }
  | { readonly at: "InService"; readonly lastFailure: string | null }
  | { readonly at: "Updating"; readonly change: Change }
  | { readonly at: "RollingBack"; readonly reason: string; readonly change: Change }
  /** What the roll-back has come to still answers. */
  | { readonly at: "UpdateRollbackFailed"; readonly reason: string }
  /** Stopped: nothing runs. */
  | { readonly at: "OutOfService" }
  | { readonly at: "Deleting" }
  | { readonly at: "Failed"; readonly reason: string };

export interface EndpointRecord {
  readonly name: string;
  readonly arn: string;
  readonly createdMs: number;
  readonly modifiedMs: number;
  readonly owner: Owner;
  /** By which its models are placed on instances; nobody is told. Absent in records of before there were such keys. */
  readonly placementKey?: PlacementKey;
  readonly state: EndpointState;
  /** The first is the one that the endpoint has, or goes back to; others come or go. */
  readonly generations: readonly [Generation, ...Generation[]];
  /** Of the last deployment that named one. */
  readonly deploymentConfig: DeploymentConfig | null;
}

/** One of which nothing runs yet. */
export function newEndpoint(
  made: Pick<EndpointRecord, "name" | "arn" | "owner" | "placementKey" | "deploymentConfig">,
  generation: Generation,
  nowMs: number,
): EndpointRecord {
  return { ...made, createdMs: nowMs, modifiedMs: nowMs, state: { at: "Creating" }, generations: [generation] };
}

/** At its first step. Without a limit and alarms where none are given. */
export function beginChange(
  startedMs: number,
  steps: readonly ChangeStep[],
  more: Partial<Pick<Change, "deadlineMs" | "alarms">> = {},
): Change {
  return { startedMs, deadlineMs: null, steps, stepIndex: 0, bakesUntilMs: null, alarms: [], ...more };
}

/** One of a configuration, of which nothing runs yet. */
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

/** With all that it is to have. */
export function settledGeneration(generation: Generation, trafficShare = 1): Generation {
  const variants = generation.variants.map((group) => ({ ...group, observed: group.settled }));
  return { ...generation, trafficShare, variants };
}

/** Of one group among those of an endpoint. */
export const groupKey = (generation: number, variantName: string) => `${generation} ${variantName}`;

/** Whether a group's answers are given to callers: a shadow's are not. */
export const isProduction = ({ plan }: Pick<VariantGroup, "plan">): boolean => plan.isShadow !== true;

/** One row of the routing table: a group's part of the endpoint's requests. */
export interface Route {
  readonly generation: number;
  readonly variantName: string;
  /** Zero for a variant that gets what names it alone. */
  readonly weight: number;
  /** Its generation's part of what names the variant. */
  readonly trafficShare: number;
}

/** The whole routing table, of a record alone. */
export function routesOf({ generations }: Pick<EndpointRecord, "generations">): readonly Route[] {
  return generations.flatMap(({ number, trafficShare, variants: all }) => {
    if (trafficShare === 0) return [];
    const variants = all.filter(isProduction);
    // Beside the largest one: sums of very large weights are no numbers.
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

/** What runs, or is to run, for an endpoint or a transform job. Each container is a server with processes of its own. */
export interface Footprint {
  readonly instanceCount: number;
  /** Of all instances together. */
  readonly containerCount: number;
  /** Guaranteed memory of their models. */
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
export function footprintBeyond(one: Footprint, other: Footprint): Footprint {
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

/** States that end by themselves. */
export function isTransient({ at }: Pick<EndpointState, "at">): boolean {
  return at === "Creating" || at === "Updating" || at === "RollingBack" || at === "Deleting";
}
