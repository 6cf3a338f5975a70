import { copyFleetKey, type ComponentRecord } from "../components/index.ts";
import { groupKey, type EndpointRecord } from "../endpoints/index.ts";
import type { InstanceOwner } from "../instances/index.ts";

/**
 * Returns the owners of the endpoint's instances that the platform may adopt after a restart: for each fleet, as many as
 * the largest instance count in the record.
 */
export function adoptableInstanceOwners({
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

/** Returns the owners of an inference component's copies that the platform may adopt after a restart. */
export function adoptableCopyOwners(record: ComponentRecord): readonly InstanceOwner[] {
  const { state, endpointName, copies } = record;
  if (state.at === "Deleting" || state.at === "Failed") return [];
  const counts = new Map<string, number>();
  return copies.map((copy) => {
    const fleetKey = copyFleetKey(record, copy);
    const ordinal = counts.get(fleetKey) ?? 0;
    counts.set(fleetKey, ordinal + 1);
    return { endpointName, fleetKey, ordinal };
  });
}
