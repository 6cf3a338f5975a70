import type { CapacitySize, ModelRecord, Owner } from "../definitions/index.ts";
import { footprintBytes, type Footprint } from "../endpoints/index.ts";
import type { NodeId } from "../nodes/index.ts";
import type { ComponentClaim, CopyNode, PlacementStrategy } from "./placement.ts";

/**
 * One version of a component's Specification: its model and the resources that each copy requires. Each update with a
 * Specification adds a version.
 */
export interface ComponentSpec {
  readonly number: number;
  /** A snapshot of the model, because the model may be deleted while copies run. The model has one container. */
  readonly model: ModelRecord;
  /** True if the request contained a ModelName; false if it contained a Container. */
  readonly isNamed: boolean;
  readonly claim: ComponentClaim;
  /** Maximum memory of a copy in bytes, if it is larger than the claimed minimum; else null. */
  readonly memoryBytesMax: number | null;
  readonly strategy: PlacementStrategy;
  readonly startSeconds: number | null;
  readonly downloadSeconds: number | null;
  /** The Specification of the request, which DescribeInferenceComponent returns. */
  readonly request: Readonly<Record<string, unknown>>;
  /**
   * All Specifications of a request that had one for each instance type. This spec was made from the one that matches
   * the variant's instance type.
   */
  readonly alternatives?: readonly Readonly<Record<string, unknown>>[];
}

/** A copy of a component: the number of its spec, and the instance of the variant on which it runs or will run. */
export interface ComponentCopy {
  readonly spec: number;
  readonly instance: number;
  /** The node of the instance. */
  readonly node: NodeId;
}

/** The desired state of a component whose copies are being changed. */
export interface ComponentGoal {
  readonly spec: number;
  readonly copyCount: number;
  /** Number of copies that are replaced at the same time; null for all copies. */
  readonly batch: CapacitySize | null;
  readonly rollbackBatch: CapacitySize | null;
  readonly waitMs: number;
  readonly deadlineMs: number | null;
  /** Names of the CloudWatch alarms that cause a rollback of the update. */
  readonly alarms?: readonly string[];
}

interface CopiesSize {
  readonly Type: "COPY_COUNT" | "CAPACITY_PERCENT";
  readonly Value: number;
}

/** DeploymentConfig of an UpdateInferenceComponent request. */
export interface ComponentDeployment {
  readonly RollingUpdatePolicy: {
    readonly MaximumBatchSize: CopiesSize;
    readonly WaitIntervalInSeconds: number;
    readonly MaximumExecutionTimeoutInSeconds?: number;
    readonly RollbackMaximumBatchSize?: CopiesSize;
  };
  readonly AutoRollbackConfiguration?: { readonly Alarms?: readonly { readonly AlarmName?: string }[] };
}

/** The status of an inference component, with SageMaker's status names in `at`. */
export type ComponentState =
  | { readonly at: "Creating"; readonly goal: ComponentGoal }
  | { readonly at: "InService"; readonly lastFailure: string | null }
  /** `undoing` is the reason for the rollback; null while the update proceeds. */
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
  /** The current spec, to which a rollback returns. During an update, the second spec is the new one. */
  readonly specs: readonly [ComponentSpec, ...ComponentSpec[]];
  /** The desired number of copies of the last completed change. */
  readonly copyCount: number;
  readonly copies: readonly ComponentCopy[];
  /** DeploymentConfig of the last update that had one. DescribeInferenceComponent returns it. */
  readonly lastDeployment?: ComponentDeployment;
}

/** Returns whether a component is being changed: the reconciler will move it to another state. */
export function isComponentInTransition({ at }: Pick<ComponentState, "at">): boolean {
  return at === "Creating" || at === "Updating" || at === "Deleting";
}

/**
 * Returns the resources that a component's copies use, including those of the desired state. The instances on which the
 * copies run count for the endpoint, not for the component.
 */
export function componentFootprint(record: ComponentRecord): Footprint {
  return copiesFootprint(largestClaimBytes(record), countedCopies(record));
}

/** Returns the memory that a copy of a component uses on its node, in bytes. */
export const copyBytes = ({ specs }: Pick<ComponentRecord, "specs">): number =>
  footprintBytes(copiesFootprint(largestClaimBytes({ specs }), 1));

/**
 * Returns the node with the memory that is available for more copies of this component: the free memory, plus the memory
 * that the component has reserved for copies that have no node yet.
 */
export function nodeForCopies(record: ComponentRecord, { freeBytes, ...node }: CopyNode): CopyNode {
  const ownBytes = (countedCopies(record) - record.copies.length) * copyBytes(record);
  return { ...node, freeBytes: Math.max(0, freeBytes) + ownBytes };
}

function countedCopies({ state, copyCount, copies }: ComponentRecord): number {
  if (state.at === "Failed" || state.at === "Deleting") return copies.length;
  return Math.max(copyCount, "goal" in state ? state.goal.copyCount : 0, copies.length);
}

/** Returns the memory claim of the current or of the new spec, whichever is larger. */
const largestClaimBytes = ({ specs }: Pick<ComponentRecord, "specs">) =>
  Math.max(...specs.map(({ claim }) => claim.memoryBytes));

/** Returns the footprint of a number of copies. The claimed memory of each copy is reserved for it. */
export function copiesFootprint(memoryBytes: number, copyCount: number): Footprint {
  const countsByBytes = new Map([[footprintBytes({ containerCount: 1, modelBytes: memoryBytes }), copyCount]]);
  return { instanceCount: 0, containerCount: copyCount, modelBytes: copyCount * memoryBytes, countsByBytes };
}
