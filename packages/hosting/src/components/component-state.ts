import { assert, unreachable } from "@galatea/base";
import type { CapacitySize } from "../definitions/index.ts";
import {
  copyBytes,
  type ComponentCopy,
  type ComponentDeployment,
  type ComponentGoal,
  type ComponentRecord,
  type ComponentSpec,
} from "./component-record.ts";
import { placeCopies, chooseSurplusCopies, type CopyNode, type SharedInstance } from "./placement.ts";

/** An event that changes the state of an inference component. */
export type ComponentEvent =
  /** Copies were added or removed; `copies` is the new list. */
  | { readonly kind: "placed"; readonly copies: readonly ComponentCopy[]; readonly nowMs: number }
  /** The component has reached its desired state. */
  | { readonly kind: "settled" }
  /** The change failed; `copies` are those that are still in service. */
  | { readonly kind: "failed"; readonly reason: string; readonly copies: readonly ComponentCopy[] }
  /** An update was requested. `spec` is null if only the number of copies changes. */
  | {
      readonly kind: "update";
      readonly spec: ComponentSpec | null;
      readonly goal: ComponentGoal;
      /** The request's DeploymentConfig, if any. */
      readonly deployment?: ComponentDeployment;
    }
  | { readonly kind: "delete" };

/** Maximum length of FailureReason in SageMaker's API. */
const reasonLengthMax = 1024;

/**
 * Returns the record of a component after an event. Throws if the event is not allowed in the current state. That is a
 * bug of the caller, because requests of users are validated before.
 */
export function applyComponentEvent(record: ComponentRecord, event: ComponentEvent): ComponentRecord {
  const { state, specs } = record;
  switch (event.kind) {
    case "placed": {
      assert(state.at === "Creating" || state.at === "Updating", `placed while ${state.at}`);
      const isFewer = event.copies.length < record.copies.length;
      if (state.at === "Creating" || !isFewer) return { ...record, copies: event.copies };
      const bakesUntilMs = state.goal.waitMs === 0 ? null : event.nowMs + state.goal.waitMs;
      return { ...record, copies: event.copies, state: { ...state, bakesUntilMs } };
    }
    case "settled": {
      assert(state.at === "Creating" || state.at === "Updating", `settled while ${state.at}`);
      const { goal } = state;
      const spec = specs.find(({ number }) => number === goal.spec);
      assert(spec !== undefined, "the record contains the spec of its goal");
      const lastFailure = state.at === "Updating" ? state.undoing : null;
      return { ...record, specs: [spec], copyCount: goal.copyCount, state: { at: "InService", lastFailure } };
    }
    case "failed":
      return failed(record, event.reason.slice(0, reasonLengthMax), event.copies);
    case "update": {
      assert(state.at === "InService", `update while ${state.at}`);
      const { goal, spec, deployment } = event;
      const next = spec === null ? specs : ([...specs, spec] as const);
      const deployed = deployment === undefined ? {} : { lastDeployment: deployment };
      return {
        ...record,
        ...deployed,
        specs: next,
        state: { at: "Updating", goal, bakesUntilMs: null, undoing: null },
      };
    }
    case "delete":
      return { ...record, state: { at: "Deleting" } };
    default:
      return unreachable(event);
  }
}

function failed(record: ComponentRecord, reason: string, copies: readonly ComponentCopy[]): ComponentRecord {
  const { state, specs, copyCount } = record;
  switch (state.at) {
    case "Creating":
      return { ...record, copies: [], state: { at: "Failed", reason } };
    case "Updating": {
      const [{ number: spec }] = specs;
      if (state.undoing !== null) {
        const lastFailure = `${state.undoing} The roll-back failed: ${reason}`.slice(0, reasonLengthMax);
        const kept = copies.filter((copy) => copy.spec === spec);
        return { ...record, specs: [specs[0]], copies: kept, state: { at: "InService", lastFailure } };
      }
      const batch = state.goal.rollbackBatch;
      const goal = { spec, copyCount, batch, rollbackBatch: null, waitMs: 0, deadlineMs: null };
      return { ...record, copies, state: { at: "Updating", goal, bakesUntilMs: null, undoing: reason } };
    }
    case "InService":
    case "Failed":
    case "Deleting":
      throw new Error(`bug: failed while ${state.at}`);
    default:
      return unreachable(state);
  }
}

/** The next step of a component towards its desired state. It is determined when all recorded copies are in service. */
export type ComponentAction =
  /** The component's copies must be changed to this list. */
  | { readonly do: "place"; readonly copies: readonly ComponentCopy[] }
  | { readonly do: "bake"; readonly untilMs: number }
  | { readonly do: "settle" }
  /** No instance has free capacity for the missing copies. */
  | { readonly do: "no-instance-capacity"; readonly missingCount: number }
  /** No node has free memory for the missing copies. */
  | { readonly do: "no-node-memory"; readonly missingCount: number };

/** The instances and nodes on which copies can be placed. */
export interface CopyCapacity {
  /** Instances of the component's variant. Their used capacity includes the copies of this component. */
  readonly instances: readonly SharedInstance[];
  readonly nodes: readonly CopyNode[];
  /** True while copies of the component drain: their memory will become free. */
  readonly isDraining: boolean;
}

/** A component that is being created or updated: its state contains a goal. */
type ApproachingComponent = Pick<ComponentRecord, "copies" | "specs"> & {
  readonly state: Extract<ComponentRecord["state"], { readonly goal: ComponentGoal }>;
};

/** Returns the next step of a component for the available capacity. */
export function nextComponentAction(
  record: ApproachingComponent,
  capacity: CopyCapacity,
  nowMs: number,
): ComponentAction {
  const { state } = record;
  const bakesUntilMs = state.at === "Updating" ? state.bakesUntilMs : null;
  if (bakesUntilMs !== null && nowMs < bakesUntilMs) return { do: "bake", untilMs: bakesUntilMs };
  return towards(record, state.goal, capacity);
}

/**
 * Returns the next step of replacing or adding copies. If there is capacity, new copies start before old copies stop. At
 * least one copy stays in service.
 */
function towards(
  { copies, specs }: ApproachingComponent,
  goal: ComponentGoal,
  { instances, nodes, isDraining }: CopyCapacity,
): ComponentAction {
  const spec = specs.find(({ number }) => number === goal.spec);
  assert(spec !== undefined, "the record contains the spec of its goal");
  const own = copies.filter((copy) => copy.spec === goal.spec);
  const old = copies.filter((copy) => copy.spec !== goal.spec);
  const batch = batchOf(goal.batch, goal.copyCount);
  if (own.length > goal.copyCount)
    return { do: "place", copies: [...old, ...without(own, own.length - goal.copyCount)] };
  const oldWanted = goal.copyCount - own.length;
  const isReplaced = own.length > 0 || goal.copyCount === 0;
  if (isReplaced && old.length > oldWanted) {
    return { do: "place", copies: [...without(old, Math.min(batch, old.length - oldWanted)), ...own] };
  }
  const missingCount = goal.copyCount - own.length;
  if (missingCount === 0) return { do: "settle" };
  const { claim, strategy } = spec;
  const bytes = copyBytes({ specs });
  const desired = { claim, copyBytes: bytes, copyCount: Math.min(batch, missingCount), strategy };
  const slots = placeCopies(instances, nodes, desired);
  if (slots.length > 0) {
    const added = slots.map((slot) => ({ spec: goal.spec, ...slot }));
    return { do: "place", copies: [...copies, ...added] };
  }
  const hasMemory = nodes.some(({ freeBytes }) => freeBytes >= bytes);
  if (!hasMemory && isDraining) return { do: "no-node-memory", missingCount };
  // There is no capacity for an additional copy: an old copy stops first, unless it is the only one in service.
  if (old.length > (own.length > 0 ? 0 : 1)) return { do: "place", copies: [...without(old, 1), ...own] };
  return { do: hasMemory ? "no-instance-capacity" : "no-node-memory", missingCount };
}

function without(copies: readonly ComponentCopy[], surplusCount: number): readonly ComponentCopy[] {
  const surplus = chooseSurplusCopies(
    copies.map(({ instance }) => instance),
    surplusCount,
  );
  return copies.filter((_, position) => !surplus.has(position));
}

function batchOf(size: CapacitySize | null, copyCount: number): number {
  if (size === null) return Infinity;
  if (size.Type === "CAPACITY_PERCENT") return Math.max(1, Math.floor((size.Value * copyCount) / 100));
  return size.Value;
}
