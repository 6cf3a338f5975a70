import { createHash } from "node:crypto";

/**
 * The instance a model sticks to: the highest of a hash of both names, so that an instance that comes or goes moves only the
 * models it gains or held (rendezvous hashing).
 */
export function chooseInstance<Instance extends { readonly id: string }>(
  instances: readonly Instance[],
  target: string,
): Instance | null {
  if (instances.length <= 1) return instances[0] ?? null;
  let best: Instance | null = null;
  let bestScore = "";
  for (const instance of instances) {
    const score = createHash("sha256").update(`${instance.id}\0${target}`).digest("hex");
    if (best === null || score > bestScore) {
      best = instance;
      bestScore = score;
    }
  }
  return best;
}

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
