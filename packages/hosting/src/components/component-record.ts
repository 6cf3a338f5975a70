import type { CapacitySize, ModelRecord, Owner } from "../definitions/index.ts";
import { footprintBytes, type Footprint } from "../endpoints/index.ts";
import type { NodeId } from "../nodes/index.ts";
import type { ComponentClaim, CopyNode, PlacementStrategy } from "./placement.ts";

/** What the copies of a component are made of, since it was created with it or updated to it. */
export interface ComponentSpec {
  readonly number: number;
  /** Copied, because models may be deleted while copies run. Of one container. */
  readonly model: ModelRecord;
  /** Whether the model was named, and not described in the request. */
  readonly isNamed: boolean;
  readonly claim: ComponentClaim;
  /** What a copy may take for its own, where that is more than its claim. */
  readonly memoryBytesMax: number | null;
  readonly strategy: PlacementStrategy;
  readonly startSeconds: number | null;
  readonly downloadSeconds: number | null;
  /** The Specification of the request, which Describe returns. */
  readonly request: Readonly<Record<string, unknown>>;
  /** The Specifications of the request, where there were several: one for each type of instance, of which this is its variant's. */
  readonly alternatives?: readonly Readonly<Record<string, unknown>>[];
}

/** A copy that runs, or is to run: of which of the component's specs, on which of its variant's instances. */
export interface ComponentCopy {
  readonly spec: number;
  readonly instance: number;
  /** The node of the instance; absent in records of before there were nodes. */
  readonly node?: NodeId;
}

/** What a component is to come to, and how. */
export interface ComponentGoal {
  readonly spec: number;
  readonly copyCount: number;
  /** Copies that are exchanged at once; all of them where nothing is said. */
  readonly batch: CapacitySize | null;
  readonly rollbackBatch: CapacitySize | null;
  readonly waitMs: number;
  readonly deadlineMs: number | null;
  /** The CloudWatch alarms that roll it back; none unless given. */
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

/** SageMaker's statuses of inference components, each with what only it has. */
export type ComponentState =
  | { readonly at: "Creating"; readonly goal: ComponentGoal }
  | { readonly at: "InService"; readonly lastFailure: string | null }
  /** `undoing`: why it goes back to what it was. */
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
  /** The first is what it has, or goes back to; another is what it is being updated to. */
  readonly specs: readonly [ComponentSpec, ...ComponentSpec[]];
  /** What it has while nothing moves. */
  readonly copyCount: number;
  readonly copies: readonly ComponentCopy[];
  /** The DeploymentConfig of the last update that had one, which Describe returns. */
  readonly lastDeployment?: ComponentDeployment;
}

/** Those that end by themselves. */
export function isMoving({ at }: Pick<ComponentState, "at">): boolean {
  return at === "Creating" || at === "Updating" || at === "Deleting";
}

/** What a component's copies take, or come to take, for the limits of an account: their instances are their endpoint's. */
export function componentFootprint(record: ComponentRecord): Footprint {
  return copiesFootprint(largestClaimBytes(record), countedCopies(record));
}

/** What a copy of a component takes of its node's memory. */
export const copyBytes = ({ specs }: Pick<ComponentRecord, "specs">): number =>
  footprintBytes(copiesFootprint(largestClaimBytes({ specs }), 1));

/** A node with what is free of it for more copies of a component: what the component has reserved and not placed yet is its own. */
export function copyNode(record: ComponentRecord, { freeBytes, ...node }: CopyNode): CopyNode {
  const ownBytes = (countedCopies(record) - record.copies.length) * copyBytes(record);
  return { ...node, freeBytes: Math.max(0, freeBytes) + ownBytes };
}

function countedCopies({ state, copyCount, copies }: ComponentRecord): number {
  if (state.at === "Failed" || state.at === "Deleting") return copies.length;
  return Math.max(copyCount, "goal" in state ? state.goal.copyCount : 0, copies.length);
}

/** Of what it has and what it is being updated to. */
const largestClaimBytes = ({ specs }: Pick<ComponentRecord, "specs">) =>
  Math.max(...specs.map(({ claim }) => claim.memoryBytes));

/** A copy is guaranteed the memory that it claims. */
export function copiesFootprint(memoryBytes: number, copyCount: number): Footprint {
  const countsByBytes = new Map([[footprintBytes({ containerCount: 1, modelBytes: memoryBytes }), copyCount]]);
  return { instanceCount: 0, containerCount: copyCount, modelBytes: copyCount * memoryBytes, countsByBytes };
}
