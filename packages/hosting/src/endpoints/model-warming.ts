import type { ModelState } from "../instance-agent/index.ts";
import { firstInRank } from "./model-placement.ts";
import type { PlacementKey } from "./model-rank.ts";

/** An instance whose requests will be routed to other instances. */
export interface WarmSource {
  readonly models: readonly Pick<ModelState, "target" | "pinCount" | "usedNs" | "wholeBytes">[];
}

/** An instance that will get those requests. */
export interface WarmInstance {
  readonly ordinal: number;
  readonly has: (target: string) => boolean;
}

/** A model that is to be loaded on an instance before requests for it go there. */
export interface Warming<Place> {
  readonly target: string;
  readonly to: Place;
  readonly bytes: number;
}

/**
 * Returns the models to load before requests move from some instances to others: each model that is in use on the
 * former and loaded on none of the latter, with the instance that it prefers. The most recently used come first.
 */
export function warmingsOf<Place extends WarmInstance>(
  from: readonly WarmSource[],
  to: readonly Place[],
  { sinceNs, key }: { readonly sinceNs: number; readonly key: PlacementKey },
): readonly Warming<Place>[] {
  const [first, ...more] = to;
  if (first === undefined) return [];
  const used = new Map<string, { readonly usedNs: number; readonly bytes: number }>();
  for (const { models } of from) {
    for (const { target, pinCount, usedNs: lastNs, wholeBytes } of models) {
      if (pinCount === 0 && lastNs <= sinceNs) continue;
      // A model with requests in flight is in use now.
      const usedNs = Math.max(pinCount > 0 ? Infinity : lastNs, used.get(target)?.usedNs ?? 0);
      used.set(target, { usedNs, bytes: Math.max(wholeBytes, used.get(target)?.bytes ?? 0) });
    }
  }
  return [...used]
    .filter(([target]) => !to.some((place) => place.has(target)))
    .toSorted(([, one], [, other]) => (one.usedNs === other.usedNs ? 0 : one.usedNs > other.usedNs ? -1 : 1))
    .map(([target, { bytes }]) => ({ target, bytes, to: firstInRank([first, ...more], { key, target }) }));
}
