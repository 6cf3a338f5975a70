import { moveEndpoint, stepOf } from "./endpoint-state.ts";
import type { EndpointRecord, Footprint, Generation, GroupSize } from "./endpoint-record.ts";
import { footprintOf } from "./endpoint-record.ts";

/** Of generations, how many instances each of their variants has. */
type Sizes = ReadonlyMap<number, readonly GroupSize[]>;

/**
 * The most that an endpoint has at once until it settles, whatever comes of what is under way: at any step of a change, and at any step of the
 * roll-back that would follow if it failed there. Instances that leave while they answer what they hold are not among it.
 */
export function plannedFootprint(record: EndpointRecord): Footprint {
  const most = { instanceCount: 0, containerCount: 0, promisedBytes: 0 };
  const units = new Map(record.generations.map(({ number, variants }) => [number, variants.map(unitOf)]));
  for (const sizes of sizesToCome(record)) {
    const now = { instanceCount: 0, containerCount: 0, promisedBytes: 0 };
    for (const [number, groups] of sizes) {
      for (const [index, unit] of (units.get(number) ?? []).entries()) {
        const { instanceCount } = groups[index] ?? { instanceCount: 0 };
        now.instanceCount += instanceCount;
        now.containerCount += instanceCount * unit.containerCount;
        now.promisedBytes += instanceCount * unit.promisedBytes;
      }
    }
    most.instanceCount = Math.max(most.instanceCount, now.instanceCount);
    most.containerCount = Math.max(most.containerCount, now.containerCount);
    most.promisedBytes = Math.max(most.promisedBytes, now.promisedBytes);
  }
  return most;
}

/** How much more one is than another; nothing where it is less. */
export function footprintBeyond(one: Footprint, other: Footprint): Footprint {
  return {
    instanceCount: Math.max(0, one.instanceCount - other.instanceCount),
    containerCount: Math.max(0, one.containerCount - other.containerCount),
    promisedBytes: Math.max(0, (one.promisedBytes ?? 0) - (other.promisedBytes ?? 0)),
  };
}

const unitOf = ({ plan }: Generation["variants"][number]) => {
  const { containerCount, promisedBytes = 0 } = footprintOf([{ plan, instanceCount: 1 }]);
  return { containerCount, promisedBytes };
};

function* sizesToCome(record: EndpointRecord): Iterable<Sizes> {
  if (record.state.at === "OutOfService") return;
  const [first] = record.generations;
  yield new Map([[first.number, first.variants.map(({ settled }) => settled)]]);
  yield new Map(record.generations.map(({ number, variants }) => [number, variants.map(({ observed }) => observed)]));
  for (let now = record, step = stepOf(now); step !== null; now = moved(now), step = stepOf(now)) {
    yield sizesOf(step);
    // It may fail before it has what the step wants, and after.
    if (now.state.at === "Updating") {
      const back = moveEndpoint(now, { kind: "failed", reason: "" }).state;
      if (back.at === "RollingBack") yield* back.change.steps.map(sizesOf);
    }
  }
}

const sizesOf = ({ generations }: NonNullable<ReturnType<typeof stepOf>>): Sizes =>
  new Map(generations.map(({ number, sizes }) => [number, sizes]));

/** As it moves when all goes well. */
function moved(record: EndpointRecord): EndpointRecord {
  const { state } = record;
  const isBaking = (state.at === "Updating" || state.at === "RollingBack") && state.change.bakesUntilMs !== null;
  return moveEndpoint(record, isBaking ? { kind: "advanced" } : { kind: "reached", nowMs: 0 });
}
