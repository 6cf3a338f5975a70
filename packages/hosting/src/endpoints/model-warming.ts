import type { ModelState } from "../instance-agent/index.ts";
import { highestRanked } from "./model-routing.ts";
import type { PlacementKey } from "./model-rank.ts";

/** An instance whose requests are about to be routed to other instances. */
export interface PreviousInstance {
  readonly models: readonly Pick<ModelState, "target" | "pinCount" | "usedNs" | "wholeBytes">[];
}

/** An instance to which the requests will be routed. */
export interface NextInstance {
  readonly ordinal: number;
  readonly has: (target: string) => boolean;
}

/** A model to load on an instance before requests for it are routed there. */
export interface ModelPreload<Place> {
  readonly target: string;
  readonly to: Place;
  readonly bytes: number;
}

/**
 * Returns the models to load before requests are routed from previous instances to next ones: each model that is in use
 * on a previous instance and loaded on no next instance, with its highest-ranked next instance. The most recently used
 * models come first.
 */
export function modelsToPreload<Place extends NextInstance>(
  from: readonly PreviousInstance[],
  to: readonly Place[],
  { sinceNs, key }: { readonly sinceNs: number; readonly key: PlacementKey },
): readonly ModelPreload<Place>[] {
  const [first, ...more] = to;
  if (first === undefined) return [];
  const used = new Map<string, { readonly usedNs: number; readonly bytes: number }>();
  for (const { models } of from) {
    for (const { target, pinCount, usedNs: lastNs, wholeBytes } of models) {
      if (pinCount === 0 && lastNs <= sinceNs) continue;
      // A model with requests in flight counts as more recently used than all idle models.
      const usedNs = Math.max(pinCount > 0 ? Infinity : lastNs, used.get(target)?.usedNs ?? 0);
      used.set(target, { usedNs, bytes: Math.max(wholeBytes, used.get(target)?.bytes ?? 0) });
    }
  }
  return [...used]
    .filter(([target]) => !to.some((location) => location.has(target)))
    .toSorted(([, one], [, other]) => (one.usedNs === other.usedNs ? 0 : one.usedNs > other.usedNs ? -1 : 1))
    .map(([target, { bytes }]) => ({ target, bytes, to: highestRanked([first, ...more], { key, target }) }));
}
