/** Returns the instance with the fewest requests in flight; one of several equal ones by `chance` in [0, 1). */
export function leastBusy<Instance extends { readonly inFlightCount: number }>(
  instances: readonly Instance[],
  chance: number,
): Instance | null {
  const from = Math.floor(chance * instances.length);
  let least: Instance | null = null;
  for (let index = 0; index < instances.length; index += 1) {
    const each = instances[(from + index) % instances.length];
    if (each !== undefined && (least === null || each.inFlightCount < least.inFlightCount)) least = each;
  }
  return least;
}

/** Returns one of the instances by `chance` in [0, 1). */
export function anyOf<Instance>(instances: readonly Instance[], chance: number): Instance | null {
  return instances[Math.floor(chance * instances.length)] ?? null;
}
