import type { ModelCopyState } from "../instance-agent/index.ts";
import { ModelRank, type PlacementKey } from "./model-rank.ts";

/** An instance that can serve a request for a model. */
export interface RoutingCandidate {
  /** Ordinal of the instance in its fleet. A replacement has the same ordinal and therefore gets the same models. */
  readonly ordinal: number;
  readonly inFlightCount: number;
}

/** A model for which a request is routed, and the state of its copies on the instances. */
export interface RoutableModel<Instance> {
  readonly target: string;
  /** The endpoint's key for the hash that ranks the instances. */
  readonly key: PlacementKey;
  readonly copyOn: (instance: Instance) => ModelCopyState;
  /** Returns whether the model causes at least an average share of an instance's requests. */
  readonly isBusyWith: (instance: Instance) => boolean;
  /**
   * Returns whether the instance can load the model without evicting a recently used one. It is called for at most one
   * instance per request.
   */
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
  /** An instance that must load an additional copy of the model, for later requests; null if none is needed. */
  readonly bring: Instance | null;
}

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
 * is loaded on the highest-ranked one that is not too busy. If all instances with the model are too busy, an additional
 * copy is loaded on the next one. If the highest-ranked instance lacks the model, a copy is loaded there, too. The
 * request itself never waits for an additional copy.
 */
export function routeModelRequest<Instance extends RoutingCandidate>(
  instances: readonly [Instance, ...Instance[]],
  model: RoutableModel<Instance>,
  limits: ModelRoutingLimits,
): RoutingDecision<Instance> {
  const [only] = instances;
  if (instances.length === 1) return { serve: only, bring: null };
  const bound = busyThresholdOf(instances, limits);
  const ranked = rankedBy(model, instances);
  const isFree = ({ inFlightCount }: Instance) => inFlightCount < bound;
  const isLoaded = (instance: Instance) => model.copyOn(instance) === "loaded";
  const top = first(ranked, () => true) ?? only;
  const mayHave = (instance: Instance | null) =>
    instance !== null && isFree(instance) && canAddCopy(instances, model, instance) ? instance : null;

  const loaded = first(ranked, (each) => isLoaded(each) && isFree(each));
  if (loaded !== null) return { serve: loaded, bring: loaded === top ? null : mayHave(top) };
  const idlest = idlestOf(ranked, isLoaded);
  if (idlest !== null) {
    // A model gets an additional copy only if it causes at least an average share of the instance's requests. Other
    // models on a busy instance are not copied.
    if (!model.isBusyWith(idlest)) return { serve: idlest, bring: null };
    const next = first(ranked, (each) => model.copyOn(each) === "absent" && isFree(each));
    return { serve: idlest, bring: mayHave(next) };
  }
  // The first load of the model is in progress: its memory is not known yet, so no additional copy is loaded.
  const coming = first(ranked, (each) => model.copyOn(each) === "coming");
  return { serve: coming ?? first(ranked, isFree) ?? top, bring: null };
}

/** Returns whether an additional copy of the model may be loaded on an instance. Additional copies are loaded one at a time. */
function canAddCopy<Instance>(instances: readonly Instance[], model: RoutableModel<Instance>, to: Instance): boolean {
  if (model.copyOn(to) !== "absent") return false;
  let copyCount = 0;
  for (const instance of instances) {
    const copy = model.copyOn(instance);
    if (copy === "coming") return false;
    if (copy === "loaded") copyCount += 1;
  }
  return copyCount < modelCopiesMax(instances.length) && model.hasMemoryOn(to);
}

function busyThresholdOf(instances: readonly RoutingCandidate[], limits: ModelRoutingLimits): number {
  let inFlightSum = 0;
  for (const { inFlightCount } of instances) inFlightSum += inFlightCount;
  return busyThreshold(inFlightSum, instances.length, limits);
}

/** An instance with its hash score for a model. */
interface Ranked<Instance> {
  readonly instance: Instance;
  readonly score: number;
}

function rankedBy<Instance extends Pick<RoutingCandidate, "ordinal">>(
  { key, target }: Pick<RoutableModel<Instance>, "key" | "target">,
  instances: readonly Instance[],
): readonly Ranked<Instance>[] {
  const rank = new ModelRank(key, target);
  return instances.map((instance) => ({ instance, score: rank.scoreOf(instance.ordinal) }));
}

/**
 * Returns the highest-ranked instance that satisfies the condition; null if there is none. For equal scores, the lower
 * ordinal wins.
 */
function first<Instance extends Pick<RoutingCandidate, "ordinal">>(
  ranked: readonly Ranked<Instance>[],
  isSo: (instance: Instance) => boolean,
): Instance | null {
  let best: Ranked<Instance> | null = null;
  for (const each of ranked) {
    if (
      best !== null &&
      (each.score < best.score || (each.score === best.score && each.instance.ordinal > best.instance.ordinal))
    )
      continue;
    if (isSo(each.instance)) best = each;
  }
  return best?.instance ?? null;
}

/**
 * Returns the instance with the fewest requests in flight that satisfies the condition; null if there is none. For equal
 * numbers, the higher-ranked instance wins.
 */
function idlestOf<Instance extends RoutingCandidate>(
  ranked: readonly Ranked<Instance>[],
  isSo: (instance: Instance) => boolean,
): Instance | null {
  let fewest = Infinity;
  for (const { instance } of ranked) {
    if (instance.inFlightCount < fewest && isSo(instance)) fewest = instance.inFlightCount;
  }
  return first(ranked, (each) => each.inFlightCount === fewest && isSo(each));
}

/** Returns the highest-ranked of the instances that have a model. Its copy stays loaded when unused copies are unloaded. */
export function highestRanked<Instance extends Pick<RoutingCandidate, "ordinal">>(
  instances: readonly [Instance, ...Instance[]],
  model: { readonly key: PlacementKey; readonly target: string },
): Instance {
  return first(rankedBy(model, instances), () => true) ?? instances[0];
}
