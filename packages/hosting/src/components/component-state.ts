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
import { placeCopies, surplusCopies, type CopyNode, type SharedInstance } from "./placement.ts";

/** Every move of a component. */
export type ComponentEvent =
  /** Copies come or go. */
  | { readonly kind: "placed"; readonly copies: readonly ComponentCopy[]; readonly nowMs: number }
  /** It has come to its goal. */
  | { readonly kind: "settled" }
  /** `copies`: those that are in service all the same. */
  | { readonly kind: "failed"; readonly reason: string; readonly copies: readonly ComponentCopy[] }
  /** `spec`: null where only the number of copies is another. */
  | {
      readonly kind: "update";
      readonly spec: ComponentSpec | null;
      readonly goal: ComponentGoal;
      /** The request's DeploymentConfig, where it had one. */
      readonly deployment?: ComponentDeployment;
    }
  | { readonly kind: "delete" };

/** FailureReason's length in SageMaker's model. */
const reasonLengthMax = 1024;

/** Every move there is. An event that a state does not know is a bug of the caller, which checks what users ask. */
export function moveComponent(record: ComponentRecord, event: ComponentEvent): ComponentRecord {
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
      assert(spec !== undefined, "a goal is one of the specs");
      const lastFailure = state.at === "Updating" ? state.undoing : null;
      return { ...record, specs: [spec], copyCount: goal.copyCount, state: { at: "InService", lastFailure } };
    }
    case "failed":
      return failed(record, event.reason.slice(0, reasonLengthMax), event.copies);
    case "update": {
      assert(state.at === "InService", `update while ${state.at}`);
      const { goal, spec, deployment } = event;
      const next = spec === null ? specs : ([...specs, spec] as const);
      const told = deployment === undefined ? {} : { lastDeployment: deployment };
      return { ...record, ...told, specs: next, state: { at: "Updating", goal, bakesUntilMs: null, undoing: null } };
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

/** Returns the next step of a component towards its goal, once all recorded copies are in service. */
export type ComponentAction =
  /** Records the copies, more or fewer. */
  | { readonly do: "place"; readonly copies: readonly ComponentCopy[] }
  | { readonly do: "bake"; readonly untilMs: number }
  | { readonly do: "settle" }
  /** So many more copies have no place. */
  | { readonly do: "no-room"; readonly missingCount: number }
  /** No node has memory for any of so many more. */
  | { readonly do: "no-memory"; readonly missingCount: number };

/** Where copies may come. */
export interface CopyRoom {
  /** Of the component's variant, with what the component itself takes of them. */
  readonly instances: readonly SharedInstance[];
  readonly nodes: readonly CopyNode[];
  /** Whether copies of the component leave, which make room for others when they are gone. */
  readonly isMade: boolean;
}

/** A record on its way to a goal. */
type ApproachingComponent = Pick<ComponentRecord, "copies" | "specs"> & {
  readonly state: Extract<ComponentRecord["state"], { readonly goal: ComponentGoal }>;
};

/** Of the record, and of the room that there is. */
export function nextComponentAction(record: ApproachingComponent, room: CopyRoom, nowMs: number): ComponentAction {
  const { state } = record;
  const bakesUntilMs = state.at === "Updating" ? state.bakesUntilMs : null;
  if (bakesUntilMs !== null && nowMs < bakesUntilMs) return { do: "bake", untilMs: bakesUntilMs };
  return towards(record, state.goal, room);
}

/** Before an old copy ends there is a new one for it where there is room, and one that answers in any case. */
function towards(
  { copies, specs }: ApproachingComponent,
  goal: ComponentGoal,
  { instances, nodes, isMade }: CopyRoom,
): ComponentAction {
  const spec = specs.find(({ number }) => number === goal.spec);
  assert(spec !== undefined, "a goal is one of the specs");
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
  const wanted = { claim, copyBytes: bytes, copyCount: Math.min(batch, missingCount), strategy };
  const slots = placeCopies(instances, nodes, wanted);
  if (slots.length > 0) {
    const added = slots.map((slot) => ({ spec: goal.spec, ...slot }));
    return { do: "place", copies: [...copies, ...added] };
  }
  const hasMemory = nodes.some(({ freeBytes }) => freeBytes >= bytes);
  if (!hasMemory && isMade) return { do: "no-memory", missingCount };
  // Without room for a new one beside them an old one makes it, as long as another copy answers.
  if (old.length > (own.length > 0 ? 0 : 1)) return { do: "place", copies: [...without(old, 1), ...own] };
  return { do: hasMemory ? "no-room" : "no-memory", missingCount };
}

function without(copies: readonly ComponentCopy[], surplusCount: number): readonly ComponentCopy[] {
  const surplus = surplusCopies(
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
