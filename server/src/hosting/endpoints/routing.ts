import { createHash } from "node:crypto";

/** The variant a request goes to: by weight, `chance` in [0, 1). Null when every weight is zero. */
export function chooseVariant<Variant extends { readonly weight: number }>(
  variants: readonly Variant[],
  chance: number,
): Variant | null {
  const total = variants.reduce((sum, { weight }) => sum + weight, 0);
  let left = chance * total;
  for (const variant of variants) {
    left -= variant.weight;
    if (left < 0) return variant;
  }
  return total > 0 ? (variants.findLast(({ weight }) => weight > 0) ?? null) : null;
}

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

/** The instance with the fewest requests in flight; the first of equals. */
export function leastBusy<Instance extends { readonly inFlightCount: number }>(
  instances: readonly Instance[],
): Instance | null {
  return instances.reduce<Instance | null>(
    (least, each) => (least === null || each.inFlightCount < least.inFlightCount ? each : least),
    null,
  );
}
