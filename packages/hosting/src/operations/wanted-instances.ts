import { randomBytes } from "node:crypto";
import type { LogFields } from "@galatea/base";
import { copiesKey, type ComponentRecord } from "../components/index.ts";
import { groupKey, type EndpointRecord, type PlacementKey } from "../endpoints/index.ts";
import type { InstanceOwner } from "../instances/index.ts";

/** The instances of an endpoint that the platform's next run may take over: as many of each fleet as its record may want. */
export function wantedInstances({ name: endpointName, state, generations }: EndpointRecord): readonly InstanceOwner[] {
  if (state.at === "Deleting" || state.at === "Failed" || state.at === "OutOfService") return [];
  return generations.flatMap(({ number, variants }) =>
    variants.flatMap(({ plan: { variant }, observed, settled }) => {
      const isServerless = variant.ServerlessConfig !== undefined;
      const count = Math.max(observed.instanceCount, settled.instanceCount, isServerless ? 1 : 0);
      const fleetKey = groupKey(number, variant.VariantName);
      return Array.from({ length: count }, (_, ordinal) => ({ endpointName, fleetKey, ordinal }));
    }),
  );
}

/** The copies of an inference component, alike. */
export function wantedCopies(record: ComponentRecord): readonly InstanceOwner[] {
  const { state, endpointName, copies } = record;
  if (state.at === "Deleting" || state.at === "Failed") return [];
  const counts = new Map<string, number>();
  return copies.map((copy) => {
    const fleetKey = copiesKey(record, copy);
    const ordinal = counts.get(fleetKey) ?? 0;
    counts.set(fleetKey, ordinal + 1);
    return { endpointName, fleetKey, ordinal };
  });
}

/** What a start tells of the endpoints that it found: how many in each state, and their instances. */
export function endpointCounts(records: readonly EndpointRecord[]): LogFields {
  const counts = new Map([["endpoints", records.length]]);
  const add = (name: string, count: number) => counts.set(name, (counts.get(name) ?? 0) + count);
  for (const { state, generations } of records) {
    add(state.at, 1);
    for (const { observed } of generations.flatMap(({ variants }) => variants))
      add("instances", observed.instanceCount);
  }
  return Object.fromEntries(counts);
}

/** Like the machine ids that log streams end in. */
export function newInstanceId(): string {
  return `i-${randomBytes(8).toString("hex")}`;
}

/** Of an endpoint that is created. */
export function newPlacementKey(): PlacementKey {
  return randomBytes(8).toString("hex");
}
