import { unreachable } from "@galatea/base";
import type { CapacitySize, DeploymentConfig, TrafficRouting } from "../definitions/index.ts";
import {
  isProductionGroup,
  type ChangeStep,
  type EndpointRecord,
  type Generation,
  type GroupSize,
  type StepGeneration,
} from "./endpoint-record.ts";

const settledSizes = ({ variants }: Generation) => variants.map(({ settled }) => settled);
const observedSizes = ({ variants }: Generation) => variants.map(({ observed }) => observed);
/** Returns the number of instances of production variants; shadow variants are excluded. */
const countOf = ({ variants }: Generation, sizes: readonly GroupSize[]) =>
  variants.reduce((sum, group, index) => sum + (isProductionGroup(group) ? (sizes[index]?.instanceCount ?? 0) : 0), 0);

/** Returns the steps of an update to the next generation, from any state of the endpoint. */
export function stepsToGeneration(
  { generations, state, deploymentConfig }: Pick<EndpointRecord, "generations" | "state" | "deploymentConfig">,
  next: Generation,
  config: DeploymentConfig | null,
): readonly ChangeStep[] {
  const steps = updateSteps(generations[0], next, config);
  if (state.at === "InService") return steps;
  if (state.at === "UpdateRollbackFailed") return [replacingStep(generations, next, steps.at(-1)?.bakeMs ?? 0)];
  // The steps of an unfinished update are rolled back first.
  return [...rollbackSteps([...generations, next], deploymentConfig), ...steps];
}

/**
 * Returns the step that replaces the generations that a failed rollback has left. They serve requests until the next
 * generation is in service.
 */
function replacingStep(generations: EndpointRecord["generations"], next: Generation, bakeMs: number): ChangeStep {
  const left = generations.map((each) => ({ number: each.number, trafficShare: 0, sizes: observedSizes(each) }));
  return { generations: [...left, { number: next.number, trafficShare: 1, sizes: settledSizes(next) }], bakeMs };
}

/** Returns the steps of an update to the next generation, from one whose instances are all in service. */
export function updateSteps(
  from: Generation,
  next: Generation,
  config: DeploymentConfig | null,
): readonly ChangeStep[] {
  const { RollingUpdatePolicy: rolling, BlueGreenUpdatePolicy: blueGreen } = config ?? {};
  if (rolling !== undefined) {
    return rollingSteps(from, next, { batch: rolling.MaximumBatchSize, bakeMs: rolling.WaitIntervalInSeconds * 1000 });
  }
  const routing = blueGreen?.TrafficRoutingConfiguration ?? { Type: "ALL_AT_ONCE", WaitIntervalInSeconds: 0 };
  const shares = sharesOf(routing, countOf(next, settledSizes(next)));
  const waitMs = routing.WaitIntervalInSeconds * 1000;
  const lastWaitMs = (blueGreen?.TerminationWaitInSeconds ?? 0) * 1000;
  return shares.map((share, index) => ({
    generations: [
      { number: from.number, trafficShare: 1 - share, sizes: settledSizes(from) },
      { number: next.number, trafficShare: share, sizes: settledSizes(next) },
    ],
    bakeMs: waitMs + (index === shares.length - 1 ? lastWaitMs : 0),
  }));
}

/** Returns the share of requests that the new fleet gets in each step of a blue/green update. */
function sharesOf(routing: TrafficRouting, instanceCount: number): readonly number[] {
  switch (routing.Type) {
    case "ALL_AT_ONCE":
      return [1];
    case "CANARY":
      return [Math.min(1, shareOfInstances(routing.CanarySize, instanceCount)), 1].filter(
        (share, at) => at === 1 || share < 1,
      );
    case "LINEAR": {
      const step = shareOfInstances(routing.LinearStepSize, instanceCount);
      const stepCount = Math.max(1, Math.ceil(1 / step - 1e-9));
      return Array.from({ length: stepCount }, (_, index) => (index === stepCount - 1 ? 1 : (index + 1) * step));
    }
    default:
      return unreachable(routing.Type);
  }
}

/** Converts a CapacitySize to a share of `instanceCount` instances; 1 if the size is undefined. */
export function shareOfInstances(size: CapacitySize | undefined, instanceCount: number): number {
  if (size === undefined) return 1;
  return size.Type === "CAPACITY_PERCENT" ? size.Value / 100 : size.Value / Math.max(1, instanceCount);
}

/** Returns the number of instances in a batch, for a variant with `instanceCount` instances. */
function batchOf(size: CapacitySize, instanceCount: number): number {
  if (size.Type === "INSTANCE_COUNT") return size.Value;
  return Math.max(1, Math.floor((size.Value * instanceCount) / 100));
}

/**
 * Returns the steps of a rolling update. Each step starts a batch of new instances and routes their share of requests to
 * them. The following step begins by stopping as many old instances.
 */
function rollingSteps(
  from: Generation,
  next: Generation,
  { batch, bakeMs }: { readonly batch: CapacitySize; readonly bakeMs: number },
): readonly ChangeStep[] {
  const [old, desired] = [settledSizes(from), settledSizes(next)];
  const stepsOf = ({ instanceCount }: GroupSize) => Math.ceil(instanceCount / batchOf(batch, instanceCount));
  const stepCount = Math.max(1, ...[...old, ...desired].map(stepsOf));
  const total = Math.max(1, countOf(next, desired));
  return Array.from({ length: stepCount }, (_, index) => {
    const isLast = index === stepCount - 1;
    const up = desired.map((size) => {
      const instanceCount = Math.min(size.instanceCount, (index + 1) * batchOf(batch, size.instanceCount));
      return { ...size, instanceCount: isLast ? size.instanceCount : instanceCount };
    });
    // At least one old instance of each variant stays until the last step: it serves the old fleet's share of requests,
    // and requests that name the variant.
    const left = old.map((size) => {
      const instanceCount = Math.max(1, size.instanceCount - index * batchOf(batch, size.instanceCount));
      return { ...size, instanceCount: Math.min(size.instanceCount, instanceCount) };
    });
    const share = isLast ? 1 : countOf(next, up) / total;
    return {
      generations: [
        { number: from.number, trafficShare: 1 - share, sizes: left },
        { number: next.number, trafficShare: share, sizes: up },
      ],
      bakeMs,
    };
  });
}

/**
 * Returns the steps of a rollback to the first generation. A blue/green deployment is rolled back in one step. A rolling
 * deployment is rolled back in batches: each step begins by stopping the instances of other generations that are no
 * longer needed in addition to those of the first generation.
 */
export function rollbackSteps(
  [first, ...others]: EndpointRecord["generations"],
  config: DeploymentConfig | null,
): readonly ChangeStep[] {
  const [now, desired] = [observedSizes(first), settledSizes(first)];
  const batch = config?.RollingUpdatePolicy?.RollbackMaximumBatchSize;
  const complete = { number: first.number, trafficShare: 1, sizes: desired };
  const kept = others.map((each) => ({ number: each.number, trafficShare: 0, sizes: observedSizes(each) }));
  if (batch === undefined) return [{ generations: [complete, ...kept], bakeMs: 0 }];
  const batches = desired.map(({ instanceCount }) => batchOf(batch, instanceCount));
  const missing = desired.map((size, index) => Math.max(0, size.instanceCount - (now[index]?.instanceCount ?? 0)));
  const stepCount = Math.max(1, ...missing.map((count, index) => Math.ceil(count / (batches[index] ?? 1))));
  const wholeCount = Math.max(1, countOf(first, desired));
  const partOf = (sizes: readonly GroupSize[]) => Math.min(1, countOf(first, sizes) / wholeCount);
  const leastShare = others.every(({ trafficShare }) => trafficShare === 0) ? 1 : first.trafficShare;
  const steps: ChangeStep[] = [];
  const add = (sizes: readonly GroupSize[], part: number, left: readonly (readonly GroupSize[])[]) => {
    const share = Math.max(leastShare, part);
    const beside = others.map((each, index): StepGeneration => ({
      number: each.number,
      trafficShare: share === 1 ? 0 : (each.trafficShare * (1 - share)) / (1 - first.trafficShare),
      sizes: left[index] ?? [],
    }));
    steps.push({ generations: [{ number: first.number, trafficShare: share, sizes }, ...beside], bakeMs: 0 });
  };
  let before = now;
  for (let index = 0; index < stepCount; index += 1) {
    const isLast = index === stepCount - 1;
    const sizes = desired.map((size, which) => {
      const instanceCount = (now[which]?.instanceCount ?? 0) + (index + 1) * (batches[which] ?? 1);
      return { ...size, instanceCount: isLast ? size.instanceCount : Math.min(size.instanceCount, instanceCount) };
    });
    const left = others.map((each) => neededInAddition(each, first, before));
    // Requests are routed away from a generation before its instances are stopped.
    if (index === 0 && left.some((each, which) => hasFewer(each, kept[which]?.sizes ?? []))) {
      add(
        now,
        partOf(now),
        kept.map(({ sizes: all }) => all),
      );
    }
    add(sizes, isLast ? 1 : partOf(sizes), left);
    before = sizes;
  }
  return steps;
}

/**
 * Returns the sizes of a generation that are needed in addition to another generation of the given sizes: for each
 * variant, enough instances for the share of requests that the other generation cannot serve.
 */
function neededInAddition(
  { variants }: Generation,
  other: Generation,
  sizes: readonly GroupSize[],
): readonly GroupSize[] {
  const wholeCount = Math.max(1, countOf(other, settledSizes(other)));
  const lacks = new Map(
    other.variants.map(({ plan, settled }, index) => {
      const part = (sizes[index]?.instanceCount ?? 0) / Math.max(1, settled.instanceCount);
      return [plan.variant.VariantName, 1 - Math.min(1, part)];
    }),
  );
  return variants.map(({ plan, settled, observed }) => {
    const lacking = lacks.get(plan.variant.VariantName) ?? 1 - Math.min(1, countOf(other, sizes) / wholeCount);
    // At least one instance of each variant stays, as during the update.
    const instanceCount = Math.max(1, Math.ceil(settled.instanceCount * lacking - 1e-9));
    return { ...observed, instanceCount: Math.min(observed.instanceCount, instanceCount) };
  });
}

const hasFewer = (sizes: readonly GroupSize[], than: readonly GroupSize[]) =>
  sizes.some(({ instanceCount }, index) => instanceCount < (than[index]?.instanceCount ?? 0));

/** Returns the steps of a change of the current generation's sizes: always a single one. */
export function resizeSteps(generation: Generation, sizes: readonly GroupSize[]): readonly ChangeStep[] {
  return [{ generations: [{ number: generation.number, trafficShare: 1, sizes }], bakeMs: 0 }];
}
