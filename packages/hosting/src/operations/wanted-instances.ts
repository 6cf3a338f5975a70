import { randomBytes } from "node:crypto";
import type { LogFields } from "@galatea/base";
import { containerModels, type EndpointRecord, type PlacementKey } from "../endpoints/index.ts";
import type { InstanceOwner } from "../instances/index.ts";

/** The multi-model containers of an endpoint that comes back with the platform. */
export function wantedInstances({ name, state, generations }: EndpointRecord): readonly InstanceOwner[] {
  const { at } = state;
  if (at === "Creating" || at === "Deleting" || at === "Failed" || at === "OutOfService") return [];
  return generations.flatMap(({ variants }) =>
    variants.flatMap(({ plan: { variant, model }, observed }) =>
      model.containers.flatMap((container) => {
        const models = containerModels(container, { variant, endpointName: name, seat: 0 });
        if (models.kind === "one") return [];
        return Array.from({ length: observed.instanceCount }, (_, seat) => ({ ...models.owner, seat }));
      }),
    ),
  );
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
