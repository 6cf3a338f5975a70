import type { ModelCopyState } from "../instance-agent/index.ts";
import type { PlacementKey } from "./model-rank.ts";
import { ModelRanks, type InstanceRanking } from "./model-ranks.ts";

/** An instance that can serve a request for a model. */
export interface RoutingCandidate {
  /** Ordinal of the instance in its fleet. A replacement has the same ordinal and therefore gets the same models. */
  readonly ordinal: number;
  readonly inFlightCount: number;
}

/** A model for which a request is routed, and the state of its copies on the instances. */
export interface RoutableModel<Instance> {
  readonly target: string;
  /** The endpoint's ranking of its instances for each model. */
  readonly ranks: ModelRanks;
  readonly copyOn: (instance: Instance) => ModelCopyState;
  /** Returns whether the model causes at least an average share of an instance's requests. */
  readonly isBusyWith: (instance: Instance) => boolean;
  /** Returns the number of the model's requests in flight on the instance. */
  readonly requestsOn: (instance: Instance) => number;
  /** Returns whether the instance can load the model without evicting a recently used one. */
  readonly hasMemoryOn: (instance: Instance) => boolean;
}

export interface ModelRoutingLimits {
  /** Maximum ratio of an instance's requests in flight to the average of all instances; above it, the instance is too busy. */
  readonly loadRatioMax: number;
  /** Number of requests in flight up to which an instance is never considered too busy. */
  readonly queueMin: number;
}

export const modelRoutingLimits: ModelRoutingLimits = { loadRatioMax: 1.5, queueMin: 8 };

export interface RoutingDecision<Instance> {
  /** The instance for the request. */
  readonly serve: Instance;
  /** The instances that must load an additional copy of the model, for later requests. */
  readonly bring: readonly Instance[];
}

/** Additional copies that one request starts to load. */
export const copiesPerRequestMax = 8;
/** Instances without memory for an additional copy that a request passes over before it gives up. */
export const fullInstancesMax = 3;

/**
 * Returns the maximum number of copies of one model: half of the instances, but at least two. A model therefore does
 * not occupy all instances of a larger fleet.
 */
export function modelCopiesMax(instanceCount: number): number {
  return Math.min(instanceCount, Math.max(2, Math.ceil(instanceCount / 2)));
}

/** Returns the number of requests in flight above which an instance is too busy for another request. */
export function busyThreshold(inFlightSum: number, instanceCount: number, limits: ModelRoutingLimits): number {
  return Math.max(limits.queueMin, Math.ceil((limits.loadRatioMax * (inFlightSum + 1)) / instanceCount));
}

/**
 * Returns the instance for a request. A keyed hash of the model's name and the ordinals ranks the instances for each
 * model (rendezvous hashing). Adding or removing an instance changes the highest-ranked instance of few models. The
 * request goes to the highest-ranked instance that has the model and is not too busy. If no instance has the model, it
 * is loaded on the highest-ranked one that is not too busy. If all instances with the model are too busy, additional
 * copies are loaded on the next ones: as many as the model's requests in flight need, from one to eight. If the
 * highest-ranked instance lacks the model, a copy is loaded there, too. The request itself never waits for an additional
 * copy.
 */
export function routeModelRequest<Instance extends RoutingCandidate>(
  instances: readonly [Instance, ...Instance[]],
  model: RoutableModel<Instance>,
  limits: ModelRoutingLimits,
): RoutingDecision<Instance> {
  const [only] = instances;
  if (instances.length === 1) return { serve: only, bring: [] };
  const bound = busyThresholdOf(instances, limits);
  const ranking = model.ranks.of(model.target, instances);
  const isFree = ({ inFlightCount }: Instance) => inFlightCount < bound;
  const isLoaded = (instance: Instance) => model.copyOn(instance) === "loaded";
  const top = ranking.first(() => true) ?? only;

  const loaded = ranking.first((each) => isLoaded(each) && isFree(each));
  if (loaded !== null) {
    const isMissing = loaded !== top && model.copyOn(top) === "absent" && isFree(top);
    const mayLoad = isMissing && additionalCopies(instances, model, bound) > 0 && model.hasMemoryOn(top);
    return { serve: loaded, bring: mayLoad ? [top] : [] };
  }
  const idlest = idlestOf(ranking, isLoaded);
  if (idlest !== null) {
    // A model gets additional copies only if it causes at least an average share of the instance's requests. Other
    // models on a busy instance are not copied.
    if (!model.isBusyWith(idlest)) return { serve: idlest, bring: [] };
    const count = additionalCopies(instances, model, bound);
    return { serve: idlest, bring: instancesForCopies(ranking, { model, isFree, count }) };
  }
  // The first load of the model is in progress: its memory is not known yet, so no additional copy is loaded.
  const coming = ranking.first((each) => model.copyOn(each) === "coming");
  return { serve: coming ?? ranking.first(isFree) ?? top, bring: [] };
}

/**
 * Returns the number of additional copies of a model to load. While one is loaded, another is needed only if the model's
 * own requests in flight make all copies too busy, those in loading included.
 */
function additionalCopies<Instance>(
  instances: readonly Instance[],
  { copyOn, requestsOn }: RoutableModel<Instance>,
  bound: number,
): number {
  let [loadedCount, comingCount, requestCount] = [0, 0, 0];
  for (const instance of instances) {
    const copy = copyOn(instance);
    if (copy === "absent") continue;
    if (copy === "loaded") loadedCount += 1;
    else comingCount += 1;
    requestCount += requestsOn(instance);
  }
  const desiredCount = Math.max(loadedCount + 1, Math.ceil(requestCount / bound));
  const copiesMax = Math.min(desiredCount, modelCopiesMax(instances.length));
  return Math.min(copiesPerRequestMax, copiesMax - loadedCount - comingCount);
}

/** Returns up to `count` instances that have memory for a copy of the model: the highest-ranked ones that are not too busy. */
function instancesForCopies<Instance extends RoutingCandidate>(
  ranking: InstanceRanking<Instance>,
  {
    model: { copyOn, hasMemoryOn },
    isFree,
    count,
  }: {
    readonly model: RoutableModel<Instance>;
    readonly isFree: (instance: Instance) => boolean;
    readonly count: number;
  },
): readonly Instance[] {
  const chosen = new Set<Instance>();
  const full = new Set<Instance>();
  while (chosen.size < count && full.size < fullInstancesMax) {
    const next = ranking.first(
      (each) => isFree(each) && copyOn(each) === "absent" && !chosen.has(each) && !full.has(each),
    );
    if (next === null) break;
    (hasMemoryOn(next) ? chosen : full).add(next);
  }
  return [...chosen];
}

function busyThresholdOf(instances: readonly RoutingCandidate[], limits: ModelRoutingLimits): number {
  let inFlightSum = 0;
  for (const { inFlightCount } of instances) inFlightSum += inFlightCount;
  return busyThreshold(inFlightSum, instances.length, limits);
}

/**
 * Returns the instance with the fewest requests in flight that satisfies the condition; null if there is none. For equal
 * numbers, the higher-ranked instance wins.
 */
function idlestOf<Instance extends RoutingCandidate>(
  ranking: InstanceRanking<Instance>,
  isSo: (instance: Instance) => boolean,
): Instance | null {
  let fewest = Infinity;
  for (const instance of ranking.instances) {
    if (instance.inFlightCount < fewest && isSo(instance)) fewest = instance.inFlightCount;
  }
  return fewest === Infinity ? null : ranking.first((each) => each.inFlightCount === fewest && isSo(each));
}

/** Returns the highest-ranked of the instances that have a model. Its copy stays loaded when unused copies are unloaded. */
export function highestRanked<Instance extends Pick<RoutingCandidate, "ordinal">>(
  instances: readonly [Instance, ...Instance[]],
  { key, target }: { readonly key: PlacementKey; readonly target: string },
): Instance {
  return new ModelRanks(key).of(target, instances).first(() => true) ?? instances[0];
}
