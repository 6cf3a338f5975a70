import { assert, unreachable } from "@galatea/base";
import type { DeploymentConfig } from "../definitions/index.ts";
import {
  newEndpointChange,
  footprintBytes,
  groupsFootprint,
  stableGeneration,
  type EndpointChange,
  type ChangeStep,
  type EndpointRecord,
  type Footprint,
  type Generation,
  type GroupSize,
} from "./endpoint-record.ts";
import { rollbackSteps } from "./change-steps.ts";

/** An event that changes the state of an endpoint. */
export type EndpointEvent =
  /** All instances of a created or restarted endpoint are in service. */
  | { readonly kind: "ready" }
  | { readonly kind: "failed"; readonly reason: string }
  /** Starts an update to another generation with the given steps. A change in progress is superseded. */
  | {
      readonly kind: "update";
      readonly next: Generation;
      readonly change: EndpointChange;
      readonly deploymentConfig: DeploymentConfig | null;
    }
  /** Starts a change of the current generation's variant sizes. */
  | { readonly kind: "resize"; readonly change: EndpointChange }
  /** The instances of the current step are in service. */
  | { readonly kind: "reached"; readonly nowMs: number }
  /** The current step has finished baking: the next step begins, or the change is complete. */
  | { readonly kind: "advanced" }
  | { readonly kind: "stop" }
  | { readonly kind: "start" }
  | { readonly kind: "delete" };

/** Maximum length of FailureReason in SageMaker's API. */
const reasonLengthMax = 1024;

/**
 * Returns the record of an endpoint after an event. Throws if the event is not allowed in the current state. That is a
 * bug of the caller, because requests of users are validated before.
 */
export function applyEndpointEvent(record: EndpointRecord, event: EndpointEvent): EndpointRecord {
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
      assert(canUpdateEndpoint(state), `update while ${state.at}`);
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
      return stepReached(record, event.nowMs);
    case "advanced":
      return stepAdvanced(record);
    case "stop":
      assert(canStopEndpoint(state), `stop while ${state.at}`);
      return { ...record, generations: [empty(generations[0])], state: { at: "OutOfService" } };
    case "start":
      assert(state.at === "OutOfService", `start while ${state.at}`);
      return { ...record, state: { at: "Creating" } };
    default:
      return unreachable(event);
  }
}

/**
 * Returns whether an endpoint can be updated. An update in progress is superseded. The endpoint must have been in service
 * before, so that a rollback is possible.
 */
export function canUpdateEndpoint({ at }: EndpointRecord["state"]): boolean {
  return at === "InService" || at === "Updating" || at === "RollingBack" || at === "UpdateRollbackFailed";
}

export function canStopEndpoint({ at }: EndpointRecord["state"]): boolean {
  return at === "InService" || at === "UpdateRollbackFailed";
}

/** Returns the current step of an endpoint's change; null if no change is in progress. */
export function currentStep({ state }: Pick<EndpointRecord, "state">): ChangeStep | null {
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
      const steps = rollbackSteps(record.generations, record.deploymentConfig);
      const change = newEndpointChange(state.change.startedMs, steps);
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

function stepReached(record: EndpointRecord, nowMs: number): EndpointRecord {
  const { state } = record;
  const step = currentStep(record);
  assert(step !== null && (state.at === "Updating" || state.at === "RollingBack"), `a step while ${state.at}`);
  const generations = applyStep(record.generations, step, (_, size) => size, "shares of the step");
  const bakesUntilMs = nowMs + step.bakeMs;
  return { ...record, generations, state: { ...state, change: { ...state.change, bakesUntilMs } } };
}

function stepAdvanced(record: EndpointRecord): EndpointRecord {
  const { state } = record;
  assert(state.at === "Updating" || state.at === "RollingBack", `a step while ${state.at}`);
  const { change } = state;
  const stepIndex = change.stepIndex + 1;
  const next = change.steps[stepIndex];
  if (next === undefined) return changeCompleted(record);
  // Instances that the step stops are removed from the record first: a restart during the step must not start them again.
  const fewer = (observed: GroupSize, { instanceCount }: GroupSize) =>
    instanceCount < observed.instanceCount ? { ...observed, instanceCount } : observed;
  const generations = applyStep(record.generations, next, fewer, "shares there are");
  return { ...record, generations, state: { ...state, change: { ...change, stepIndex, bakesUntilMs: null } } };
}

/** Returns the record after a completed change: only the generation that gets all requests is left. */
function changeCompleted(record: EndpointRecord): EndpointRecord {
  const { state, generations } = record;
  const serving = generations.find(({ trafficShare }) => trafficShare === 1);
  assert(serving !== undefined, "a change ends with all requests going to one generation");
  const variants = serving.variants.map((group) => ({ ...group, settled: group.observed }));
  const lastFailure = state.at === "RollingBack" ? state.reason : null;
  return { ...record, generations: [{ ...serving, variants }], state: { at: "InService", lastFailure } };
}

function applyStep(
  generations: EndpointRecord["generations"],
  step: ChangeStep,
  observe: (observed: GroupSize, desired: GroupSize) => GroupSize,
  shares: "shares of the step" | "shares there are",
): EndpointRecord["generations"] {
  const [first, ...others] = generations;
  const follow = (generation: Generation): Generation | null => {
    const desired = step.generations.find(({ number }) => number === generation.number);
    if (desired === undefined) return null;
    const variants = generation.variants.map((group, index) => {
      const size = desired.sizes[index];
      return size === undefined ? group : { ...group, observed: observe(group.observed, size) };
    });
    const trafficShare = shares === "shares of the step" ? desired.trafficShare : generation.trafficShare;
    return { ...generation, trafficShare, variants };
  };
  // The first generation stays in the record, even without instances, because a rollback returns to it.
  return [follow(first) ?? empty(first), ...others.flatMap((each) => follow(each) ?? [])];
}

function empty(generation: Generation): Generation {
  const variants = generation.variants.map((group) => ({
    ...group,
    observed: { ...group.observed, instanceCount: 0 },
  }));
  return { ...generation, trafficShare: 0, variants };
}

/** The next action of a change in progress. */
export type ChangeAction =
  /** The missing instances of the current step must be started. */
  | { readonly do: "bring-up" }
  | { readonly do: "bake"; readonly untilMs: number }
  /** The change continues with the next step, after a check that the instances are in service. */
  | { readonly do: "advance" };

/**
 * Returns the next action of a change. The action depends only on the record, so that the change continues after a
 * restart of the platform.
 */
export function nextChangeAction({ bakesUntilMs }: EndpointChange, nowMs: number): ChangeAction {
  if (bakesUntilMs === null) return { do: "bring-up" };
  return nowMs < bakesUntilMs ? { do: "bake", untilMs: bakesUntilMs } : { do: "advance" };
}

/** The variant sizes of each generation, by generation number. */
type Sizes = ReadonlyMap<number, readonly GroupSize[]>;

/**
 * Returns the maximum resources that an endpoint uses at any time until it is stable: at each step of the change in progress, and at each step
 * of a rollback from there. Draining instances are excluded.
 */
export function peakFootprint(record: EndpointRecord): Footprint {
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
  const { containerCount, modelBytes } = groupsFootprint([{ plan, instanceCount: 1 }]);
  return { containerCount, modelBytes, bytes: footprintBytes({ containerCount, modelBytes }) };
};

function* sizesToCome(record: EndpointRecord): Iterable<Sizes> {
  if (record.state.at === "OutOfService") return;
  const [first] = record.generations;
  yield new Map([[first.number, first.variants.map(({ settled }) => settled)]]);
  yield new Map(record.generations.map(({ number, variants }) => [number, variants.map(({ observed }) => observed)]));
  for (let now = record, step = currentStep(now); step !== null; now = afterSuccess(now), step = currentStep(now)) {
    yield sizesOf(step);
    // A rollback can start before or after the instances of this step are in service. The loop visits both cases.
    if (now.state.at === "Updating") {
      const back = applyEndpointEvent(now, { kind: "failed", reason: "" }).state;
      if (back.at === "RollingBack") yield* back.change.steps.map(sizesOf);
    }
  }
}

const sizesOf = ({ generations }: NonNullable<ReturnType<typeof currentStep>>): Sizes =>
  new Map(generations.map(({ number, sizes }) => [number, sizes]));

/** Returns the record after the next transition, assuming that it succeeds. */
function afterSuccess(record: EndpointRecord): EndpointRecord {
  const { state } = record;
  const isBaking = (state.at === "Updating" || state.at === "RollingBack") && state.change.bakesUntilMs !== null;
  return applyEndpointEvent(record, isBaking ? { kind: "advanced" } : { kind: "reached", nowMs: 0 });
}
