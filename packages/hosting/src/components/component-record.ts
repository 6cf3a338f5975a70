import type { CapacitySize, ModelRecord, Owner } from "../definitions/index.ts";
import { footprintBytes, type Footprint } from "../endpoints/index.ts";
import type { NodeId } from "../nodes/index.ts";
import type { ComponentClaim, CopyNode, PlacementStrategy } from "./placement.ts";

/** The model and the claim of a component's copies, from its creation or an update. */
export interface ComponentSpec {
  readonly number: number;
  /** A copy, because models may be deleted while copies run. It has one container. */
  readonly model: ModelRecord;
  /** True where the request named the model; false where it described a container. */
  readonly isNamed: boolean;
  readonly claim: ComponentClaim;
  /** Maximum memory of a copy, where it exceeds the claim. */
  readonly memoryBytesMax: number | null;
  readonly strategy: PlacementStrategy;
  readonly startSeconds: number | null;
  readonly downloadSeconds: number | null;
  /** The Specification of the request, which Describe returns. */
  readonly request: Readonly<Record<string, unknown>>;
  /**
   * The Specifications of the request, where it had several: one for each instance type. This spec is the one for its
   * variant's type.
   */
  readonly alternatives?: readonly Readonly<Record<string, unknown>>[];
}

/** A copy that runs or is to run: its spec, and the instance of its variant. */
export interface ComponentCopy {
  readonly spec: number;
  readonly instance: number;
  /** The node of the instance. */
  readonly node: NodeId;
}

/** The goal of a transition. */
export interface ComponentGoal {
  readonly spec: number;
  readonly copyCount: number;
  /** Number of copies that are replaced at once; null for all. */
  readonly batch: CapacitySize | null;
  readonly rollbackBatch: CapacitySize | null;
  readonly waitMs: number;
  readonly deadlineMs: number | null;
  /** The CloudWatch alarms that roll the update back. */
  readonly alarms?: readonly string[];
}

interface CopiesSize {
  readonly Type: "COPY_COUNT" | "CAPACITY_PERCENT";
  readonly Value: number;
}

/** The DeploymentConfig of an update. */
export interface ComponentDeployment {
  readonly RollingUpdatePolicy: {
    readonly MaximumBatchSize: CopiesSize;
    readonly WaitIntervalInSeconds: number;
    readonly MaximumExecutionTimeoutInSeconds?: number;
    readonly RollbackMaximumBatchSize?: CopiesSize;
  };
  readonly AutoRollbackConfiguration?: { readonly Alarms?: readonly { readonly AlarmName?: string }[] };
}

/** SageMaker's statuses of inference components, each with its own fields. */
export type ComponentState =
  | { readonly at: "Creating"; readonly goal: ComponentGoal }
  | { readonly at: "InService"; readonly lastFailure: string | null }
  /** `undoing`: the reason for rolling back. */
  | {
      readonly at: "Updating";
      readonly goal: ComponentGoal;
      readonly bakesUntilMs: number | null;
      readonly undoing: string | null;
    }
  | { readonly at: "Failed"; readonly reason: string }
  | { readonly at: "Deleting" };

export interface ComponentRecord {
  readonly name: string;
  readonly arn: string;
  readonly createdMs: number;
  readonly modifiedMs: number;
  readonly owner: Owner;
  readonly endpointName: string;
  readonly variantName: string;
  readonly state: ComponentState;
  /** The first is the current spec, to which a rollback returns; a second is the target of an update. */
  readonly specs: readonly [ComponentSpec, ...ComponentSpec[]];
  /** The number of copies outside of transitions. */
  readonly copyCount: number;
  readonly copies: readonly ComponentCopy[];
  /** The DeploymentConfig of the last update that had one, which Describe returns. */
  readonly lastDeployment?: ComponentDeployment;
}

/** Returns whether a state ends by itself. */
export function isMoving({ at }: Pick<ComponentState, "at">): boolean {
  return at === "Creating" || at === "Updating" || at === "Deleting";
}

/**
 * Returns the account's use by a component's copies, including those of its goal; their instances belong to the
 * endpoint.
 */
export function componentFootprint(record: ComponentRecord): Footprint {
  return copiesFootprint(largestClaimBytes(record), countedCopies(record));
}

/** Returns the memory that a copy of a component takes of its node. */
export const copyBytes = ({ specs }: Pick<ComponentRecord, "specs">): number =>
  footprintBytes(copiesFootprint(largestClaimBytes({ specs }), 1));

/**
 * Returns a node with the memory that is free for more copies of a component, including what the component has reserved
 * for copies not placed yet.
 */
export function copyNode(record: ComponentRecord, { freeBytes, ...node }: CopyNode): CopyNode {
  const ownBytes = (countedCopies(record) - record.copies.length) * copyBytes(record);
  return { ...node, freeBytes: Math.max(0, freeBytes) + ownBytes };
}

function countedCopies({ state, copyCount, copies }: ComponentRecord): number {
  if (state.at === "Failed" || state.at === "Deleting") return copies.length;
  return Math.max(copyCount, "goal" in state ? state.goal.copyCount : 0, copies.length);
}

/** The larger claim of the current and the target spec. */
const largestClaimBytes = ({ specs }: Pick<ComponentRecord, "specs">) =>
  Math.max(...specs.map(({ claim }) => claim.memoryBytes));

/** Returns the footprint of copies; each is guaranteed the memory that it claims. */
export function copiesFootprint(memoryBytes: number, copyCount: number): Footprint {
  const countsByBytes = new Map([[footprintBytes({ containerCount: 1, modelBytes: memoryBytes }), copyCount]]);
  return { instanceCount: 0, containerCount: copyCount, modelBytes: copyCount * memoryBytes, countsByBytes };
}
