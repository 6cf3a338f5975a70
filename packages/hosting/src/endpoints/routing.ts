/** The instance with the fewest requests in flight; of equals one at random, `chance` in [0, 1). */
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

/** One of them, `chance` in [0, 1). */
export function anyOf<Instance>(instances: readonly Instance[], chance: number): Instance | null {
  return instances[Math.floor(chance * instances.length)] ?? null;
}
