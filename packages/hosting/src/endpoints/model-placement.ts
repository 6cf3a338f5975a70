import type { ModelCopy } from "../instance-agent/index.ts";
import { ModelRank, type PlacementKey } from "./model-rank.ts";

/** An instance that can serve a request for a model. */
export interface PlacementCandidate {
  /** Number among the instances of its fleet: a replacement has the same number, and so the same models. */
  readonly ordinal: number;
  readonly inFlightCount: number;
}

/** A model with its present copies on the instances. */
export interface PlacedModel<Instance> {
  readonly target: string;
  /** The key of the endpoint. */
  readonly key: PlacementKey;
  readonly copyOn: (instance: Instance) => ModelCopy;
  /** Returns whether most requests of an instance are for the model. */
  readonly isBusyWith: (instance: Instance) => boolean;
  /**
   * Returns whether the instance can load the model without evicting a recently used one. Called for one instance at
   * most.
   */
  readonly hasRoomOn: (instance: Instance) => boolean;
}

export interface PlacementLimits {
  /** Maximum ratio of an instance's requests in flight to the average. */
  readonly loadRatioMax: number;
  /** Number of requests in flight up to which an instance is never too busy, whatever the average. */
  readonly queueMin: number;
}

export const placementLimits: PlacementLimits = { loadRatioMax: 1.5, queueMin: 8 };

export interface PlacedRequest<Instance> {
  /** The instance for the request. */
  readonly serve: Instance;
  /** An instance that is to load a further copy; it gets requests once the copy is loaded. */
  readonly bring: Instance | null;
}

/** Returns the maximum number of copies of one model, so that no model is on all instances. */
export function copiesMax(instanceCount: number): number {
  return Math.min(instanceCount, Math.max(2, Math.ceil(instanceCount / 2)));
}

/** Returns the number of requests in flight above which an instance gets no more while another one can serve them. */
export function queueBound(inFlightSum: number, instanceCount: number, limits: PlacementLimits): number {
  return Math.max(limits.queueMin, Math.ceil((limits.loadRatioMax * (inFlightSum + 1)) / instanceCount));
}

/**
 * Returns the instance for a request. Each model ranks the instances by a keyed hash of its name and their ordinals
 * (rendezvous hashing), so that adding or removing an instance changes the first rank only of the models that it gains
 * or had. A request goes to the first in rank that has the model and is not too busy. If none has it, it is loaded on
 * the first that is not too busy. If those that have it are too busy, a copy is loaded on the next one; if the first in
 * rank is new or has returned, a copy is loaded there. No request waits for an additional copy. The result depends only
 * on the arguments and takes a few passes over the instances.
 */
export function placeModel<Instance extends PlacementCandidate>(
  instances: readonly [Instance, ...Instance[]],
  model: PlacedModel<Instance>,
  limits: PlacementLimits,
): PlacedRequest<Instance> {
  const [only] = instances;
  if (instances.length === 1) return { serve: only, bring: null };
  const bound = boundOf(instances, limits);
  const ranked = rankedBy(model, instances);
  const isFree = ({ inFlightCount }: Instance) => inFlightCount < bound;
  const isLoaded = (instance: Instance) => model.copyOn(instance) === "loaded";
  const top = first(ranked, () => true) ?? only;
  const mayHave = (instance: Instance | null) =>
    instance !== null && isFree(instance) && mayBring(instances, model, instance) ? instance : null;

  const loaded = first(ranked, (each) => isLoaded(each) && isFree(each));
  if (loaded !== null) return { serve: loaded, bring: loaded === top ? null : mayHave(top) };
  const idlest = idlestOf(ranked, isLoaded);
  if (idlest !== null) {
    // Only the model that causes the load gets a copy, not the others on the same instance.
    if (!model.isBusyWith(idlest)) return { serve: idlest, bring: null };
    const next = first(ranked, (each) => model.copyOn(each) === "absent" && isFree(each));
    return { serve: idlest, bring: mayHave(next) };
  }
  // The memory of a model that is being loaded for the first time is not known yet: no further copy before that.
  const coming = first(ranked, (each) => model.copyOn(each) === "coming");
  return { serve: coming ?? first(ranked, isFree) ?? top, bring: null };
}

/** Returns whether a model may get a further copy on an instance; one at a time. */
function mayBring<Instance>(instances: readonly Instance[], model: PlacedModel<Instance>, to: Instance): boolean {
  if (model.copyOn(to) !== "absent") return false;
  let copyCount = 0;
  for (const instance of instances) {
    const copy = model.copyOn(instance);
    if (copy === "coming") return false;
    if (copy === "loaded") copyCount += 1;
  }
  return copyCount < copiesMax(instances.length) && model.hasRoomOn(to);
}

function boundOf(instances: readonly PlacementCandidate[], limits: PlacementLimits): number {
  let inFlightSum = 0;
  for (const { inFlightCount } of instances) inFlightSum += inFlightCount;
  return queueBound(inFlightSum, instances.length, limits);
}

/** An instance and its score for a model. */
interface Ranked<Instance> {
  readonly instance: Instance;
  readonly score: number;
}

function rankedBy<Instance extends Pick<PlacementCandidate, "ordinal">>(
  { key, target }: Pick<PlacedModel<Instance>, "key" | "target">,
  instances: readonly Instance[],
): readonly Ranked<Instance>[] {
  const rank = new ModelRank(key, target);
  return instances.map((instance) => ({ instance, score: rank.scoreOf(instance.ordinal) }));
}

/**
 * Returns the first in a model's rank that satisfies the condition; null for none. For equal scores the lower ordinal
 * is first.
 */
function first<Instance extends Pick<PlacementCandidate, "ordinal">>(
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
 * Returns the instance with the fewest requests that satisfies the condition, in doubt the first in rank; null for
 * none.
 */
function idlestOf<Instance extends PlacementCandidate>(
  ranked: readonly Ranked<Instance>[],
  isSo: (instance: Instance) => boolean,
): Instance | null {
  let fewest = Infinity;
  for (const { instance } of ranked) {
    if (instance.inFlightCount < fewest && isSo(instance)) fewest = instance.inFlightCount;
  }
  return first(ranked, (each) => each.inFlightCount === fewest && isSo(each));
}

/** Returns the first in rank of the instances that have a model: its copy stays when the others are unloaded. */
export function firstInRank<Instance extends Pick<PlacementCandidate, "ordinal">>(
  instances: readonly [Instance, ...Instance[]],
  model: { readonly key: PlacementKey; readonly target: string },
): Instance {
  return first(rankedBy(model, instances), () => true) ?? instances[0];
}
