import { randomBytes } from "node:crypto";
import type { LogFields } from "@galatea/base";
import { copiesKey, type ComponentRecord } from "../components/index.ts";
import { groupKey, type EndpointRecord, type PlacementKey } from "../endpoints/index.ts";
import type { InstanceOwner } from "../instances/index.ts";

/**
 * Returns the owners of an endpoint's instances that the platform's next run may adopt: for each fleet the largest
 * count in its record.
 */
export function adoptableInstances({
  name: endpointName,
  state,
  generations,
}: EndpointRecord): readonly InstanceOwner[] {
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

/** Returns the owners of an inference component's copies that the platform's next run may adopt. */
export function adoptableCopies(record: ComponentRecord): readonly InstanceOwner[] {
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

/** Returns the numbers of endpoints by state, and of their instances, for the log line of a start. */
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

/** Returns a random id in the format of the machine ids at the end of log stream names. */
export function newInstanceId(): string {
  return `i-${randomBytes(8).toString("hex")}`;
}

/** Returns a random key for a new endpoint. */
export function newPlacementKey(): PlacementKey {
  return randomBytes(8).toString("hex");
}
