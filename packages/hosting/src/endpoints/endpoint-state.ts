import { assert, unreachable } from "@galatea/base";
import type { DeploymentConfig } from "../definitions/index.ts";
import {
  beginChange,
  footprintBytes,
  footprintOf,
  stableGeneration,
  type Change,
  type ChangeStep,
  type EndpointRecord,
  type Footprint,
  type Generation,
  type GroupSize,
} from "./endpoint-record.ts";
import { restoringSteps } from "./change-steps.ts";

/** An event in the life cycle of an endpoint. */
export type EndpointEvent =
  /** The instances of a creation or a restart are in service. */
  | { readonly kind: "ready" }
  | { readonly kind: "failed"; readonly reason: string }
  /** Starts an update to another generation with the given steps; it supersedes a change in progress. */
  | {
      readonly kind: "update";
      readonly next: Generation;
      readonly change: Change;
      readonly deploymentConfig: DeploymentConfig | null;
    }
  /** Starts a change of the current generation's sizes. */
  | { readonly kind: "resize"; readonly change: Change }
  /** The instances of the current step are in service. */
  | { readonly kind: "reached"; readonly nowMs: number }
  /** The step has baked: the next one begins, or the change is complete. */
  | { readonly kind: "advanced" }
  | { readonly kind: "stop" }
  | { readonly kind: "start" }
  | { readonly kind: "delete" };

/** FailureReason's length in SageMaker's model. */
const reasonLengthMax = 1024;

/**
 * Returns the record after an event. Throws on an event that the state does not allow, which is a bug of the caller:
 * callers validate users' requests.
 */
export function moveEndpoint(record: EndpointRecord, event: EndpointEvent): EndpointRecord {
  const { state, generations } = record;
  switch (event.kind) {
    case "delete":
      return { ...record, state: { at: "Deleting" } };
    case "ready":
      assert(state.at === "Creating", `ready while ${state.at}`);
      return {
        ...record,
        generations: [stableGeneration(generations[0])],
        state: { at: "InService", lastFailure: null },
      };
    case "failed":
      return failed(record, event.reason.slice(0, reasonLengthMax));
    case "update": {
      assert(mayUpdate(state), `update while ${state.at}`);
      const { next, change, deploymentConfig } = event;
      return {
        ...record,
        deploymentConfig,
        generations: [...generations, next],
        state: { at: "Updating", change },
      };
    }
    case "resize":
      assert(state.at === "InService", `resize while ${state.at}`);
      return { ...record, state: { at: "Updating", change: event.change } };
    case "reached":
      return reached(record, event.nowMs);
    case "advanced":
      return advanced(record);
    case "stop":
      assert(mayStop(state), `stop while ${state.at}`);
      return { ...record, generations: [empty(generations[0])], state: { at: "OutOfService" } };
    case "start":
      assert(state.at === "OutOfService", `start while ${state.at}`);
      return { ...record, state: { at: "Creating" } };
    default:
      return unreachable(event);
  }
}

/**
 * Returns whether an endpoint can be updated. An update supersedes one in progress, but there has to be a generation to
 * roll back to.
 */
export function mayUpdate({ at }: EndpointRecord["state"]): boolean {
  return at === "InService" || at === "Updating" || at === "RollingBack" || at === "UpdateRollbackFailed";
}

export function mayStop({ at }: EndpointRecord["state"]): boolean {
  return at === "InService" || at === "UpdateRollbackFailed";
}

/** Returns the current step of an endpoint; null outside of changes. */
export function stepOf({ state }: Pick<EndpointRecord, "state">): ChangeStep | null {
  if (state.at !== "Updating" && state.at !== "RollingBack") return null;
  const step = state.change.steps[state.change.stepIndex];
  assert(step !== undefined, "a change is at one of its steps");
  return step;
}

function failed(record: EndpointRecord, reason: string): EndpointRecord {
  const { state } = record;
  switch (state.at) {
    case "Creating":
      return { ...record, state: { at: "Failed", reason } };
    case "Updating": {
      const steps = restoringSteps(record.generations, record.deploymentConfig);
      const change = beginChange(state.change.startedMs, steps);
      return { ...record, state: { at: "RollingBack", reason, change } };
    }
    case "RollingBack": {
      const text = `${state.reason} The roll-back failed: ${reason}`.slice(0, reasonLengthMax);
      return { ...record, state: { at: "UpdateRollbackFailed", reason: text } };
    }
    case "InService":
    case "UpdateRollbackFailed":
    case "OutOfService":
    case "Deleting":
    case "Failed":
      throw new Error(`bug: failed while ${state.at}`);
    default:
      return unreachable(state);
  }
}

function reached(record: EndpointRecord, nowMs: number): EndpointRecord {
  const { state } = record;
  const step = stepOf(record);
  assert(step !== null && (state.at === "Updating" || state.at === "RollingBack"), `a step while ${state.at}`);
  const generations = followed(record.generations, step, (_, size) => size, "shares of the step");
  const bakesUntilMs = nowMs + step.bakeMs;
  return { ...record, generations, state: { ...state, change: { ...state.change, bakesUntilMs } } };
}

function advanced(record: EndpointRecord): EndpointRecord {
  const { state } = record;
  assert(state.at === "Updating" || state.at === "RollingBack", `a step while ${state.at}`);
  const { change } = state;
  const stepIndex = change.stepIndex + 1;
  const next = change.steps[stepIndex];
  if (next === undefined) return settled(record);
  // Instances that stop with the step are not started again after a restart in the middle of it.
  const fewer = (observed: GroupSize, { instanceCount }: GroupSize) =>
    instanceCount < observed.instanceCount ? { ...observed, instanceCount } : observed;
  const generations = followed(record.generations, next, fewer, "shares there are");
  return { ...record, generations, state: { ...state, change: { ...change, stepIndex, bakesUntilMs: null } } };
}

/** Returns the record after a change: the generation with all requests is the only one. */
function settled(record: EndpointRecord): EndpointRecord {
  const { state, generations } = record;
  const serving = generations.find(({ trafficShare }) => trafficShare === 1);
  assert(serving !== undefined, "a change ends with all requests going to one generation");
  const variants = serving.variants.map((group) => ({ ...group, settled: group.observed }));
  const lastFailure = state.at === "RollingBack" ? state.reason : null;
  return { ...record, generations: [{ ...serving, variants }], state: { at: "InService", lastFailure } };
}

function followed(
  generations: EndpointRecord["generations"],
  step: ChangeStep,
  observe: (observed: GroupSize, wanted: GroupSize) => GroupSize,
  shares: "shares of the step" | "shares there are",
): EndpointRecord["generations"] {
  const [first, ...others] = generations;
  const follow = (generation: Generation): Generation | null => {
    const wanted = step.generations.find(({ number }) => number === generation.number);
    if (wanted === undefined) return null;
    const variants = generation.variants.map((group, index) => {
      const size = wanted.sizes[index];
      return size === undefined ? group : { ...group, observed: observe(group.observed, size) };
    });
    const trafficShare = shares === "shares of the step" ? wanted.trafficShare : generation.trafficShare;
    return { ...generation, trafficShare, variants };
  };
  // The first generation stays as the target of a rollback, even without instances.
  return [follow(first) ?? empty(first), ...others.flatMap((each) => follow(each) ?? [])];
}

function empty(generation: Generation): Generation {
  const variants = generation.variants.map((group) => ({
    ...group,
    observed: { ...group.observed, instanceCount: 0 },
  }));
  return { ...generation, trafficShare: 0, variants };
}

/** The next action of a step of a deployment. */
export type ChangeAction =
  /** Start the missing instances. */
  | { readonly do: "bring-up" }
  | { readonly do: "bake"; readonly untilMs: number }
  /** Check that the instances are in service, and go on. */
  | { readonly do: "advance" };

/**
 * Returns the next action of a change. It depends on the record only: after a restart the platform continues the same
 * change.
 */
export function nextChangeAction({ bakesUntilMs }: Change, nowMs: number): ChangeAction {
  if (bakesUntilMs === null) return { do: "bring-up" };
  return nowMs < bakesUntilMs ? { do: "bake", untilMs: bakesUntilMs } : { do: "advance" };
}

/** The sizes of the variants of each generation. */
type Sizes = ReadonlyMap<number, readonly GroupSize[]>;

/**
 * Returns the most that an endpoint has at once until it is stable, whether the change in progress succeeds or fails: at any step of the change,
 * and at any step of the roll-back from there. Draining instances are excluded.
 */
export function plannedFootprint(record: EndpointRecord): Footprint {
  const most = { instanceCount: 0, containerCount: 0, modelBytes: 0, countsByBytes: new Map<number, number>() };
  const units = new Map(record.generations.map(({ number, variants }) => [number, variants.map(unitOf)]));
  for (const sizes of sizesToCome(record)) {
    const now = { instanceCount: 0, containerCount: 0, modelBytes: 0 };
    const counts = new Map<number, number>();
    for (const [number, groups] of sizes) {
      for (const [index, unit] of (units.get(number) ?? []).entries()) {
        const { instanceCount } = groups[index] ?? { instanceCount: 0 };
        now.instanceCount += instanceCount;
        now.containerCount += instanceCount * unit.containerCount;
        now.modelBytes += instanceCount * unit.modelBytes;
        counts.set(unit.bytes, (counts.get(unit.bytes) ?? 0) + instanceCount);
      }
    }
    most.instanceCount = Math.max(most.instanceCount, now.instanceCount);
    most.containerCount = Math.max(most.containerCount, now.containerCount);
    most.modelBytes = Math.max(most.modelBytes, now.modelBytes);
    for (const [bytes, count] of counts) {
      most.countsByBytes.set(bytes, Math.max(most.countsByBytes.get(bytes) ?? 0, count));
    }
  }
  return most;
}

const unitOf = ({ plan }: Generation["variants"][number]) => {
  const { containerCount, modelBytes } = footprintOf([{ plan, instanceCount: 1 }]);
  return { containerCount, modelBytes, bytes: footprintBytes({ containerCount, modelBytes }) };
};

function* sizesToCome(record: EndpointRecord): Iterable<Sizes> {
  if (record.state.at === "OutOfService") return;
  const [first] = record.generations;
  yield new Map([[first.number, first.variants.map(({ settled }) => settled)]]);
  yield new Map(record.generations.map(({ number, variants }) => [number, variants.map(({ observed }) => observed)]));
  for (let now = record, step = stepOf(now); step !== null; now = afterSuccess(now), step = stepOf(now)) {
    yield sizesOf(step);
    // The change may fail before the step's instances are in service, and after.
    if (now.state.at === "Updating") {
      const back = moveEndpoint(now, { kind: "failed", reason: "" }).state;
      if (back.at === "RollingBack") yield* back.change.steps.map(sizesOf);
    }
  }
}

const sizesOf = ({ generations }: NonNullable<ReturnType<typeof stepOf>>): Sizes =>
  new Map(generations.map(({ number, sizes }) => [number, sizes]));

/** Returns the record after the next transition, if that succeeds. */
function afterSuccess(record: EndpointRecord): EndpointRecord {
  const { state } = record;
  const isBaking = (state.at === "Updating" || state.at === "RollingBack") && state.change.bakesUntilMs !== null;
  return moveEndpoint(record, isBaking ? { kind: "advanced" } : { kind: "reached", nowMs: 0 });
}
