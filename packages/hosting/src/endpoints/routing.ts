/** Returns the instance with the fewest requests in flight. The random number `chance` in [0, 1) chooses among equal ones. */
export function chooseLeastBusy<Instance extends { readonly inFlightCount: number }>(
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

/** Returns a random instance; `chance` is a random number in [0, 1). Returns null if there are no instances. */
export function chooseRandom<Instance>(instances: readonly Instance[], chance: number): Instance | null {
  return instances[Math.floor(chance * instances.length)] ?? null;
}

/** Returns the instances that satisfy a condition, or all instances if none satisfies it. */
export function preferred<Member>(members: readonly Member[], passes: (member: Member) => boolean): readonly Member[] {
  if (members.length < 2 || members.every(passes)) return members;
  const passing = members.filter(passes);
  return passing.length === 0 ? members : passing;
}
