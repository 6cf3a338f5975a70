import type { ModelCopy } from "../instance-agent/index.ts";
import { ModelRank, type PlacementKey } from "./model-rank.ts";

/** An instance that a request for a model can go to. */
export interface PlacementCandidate {
  /** Its number among the instances of its fleet: the one that takes its place later has the same, and with it the same models. */
  readonly ordinal: number;
  readonly inFlightCount: number;
}

/** One model as the instances have it now. */
export interface PlacedModel<Instance> {
  readonly target: string;
  /** Of the endpoint. */
  readonly key: PlacementKey;
  readonly copyOn: (instance: Instance) => ModelCopy;
  /** Whether it is among the models that an instance is busy with, and not beside them. */
  readonly isBusyWith: (instance: Instance) => boolean;
  /** Whether the model could come there without pushing out one that has just been used. Asked about one instance at most. */
  readonly hasRoomOn: (instance: Instance) => boolean;
}

export interface PlacementLimits {
  /** An instance may hold so many times the average of requests in flight. */
  readonly loadRatioMax: number;
  /** Up to so many requests in flight an instance is never too busy, whatever the average is. */
  readonly queueMin: number;
}

export const placementLimits: PlacementLimits = { loadRatioMax: 1.5, queueMin: 8 };

export interface PlacedRequest<Instance> {
  /** Where the request goes. */
  readonly serve: Instance;
  /** Where the model is to come beside that: requests go there once it has come. */
  readonly bring: Instance | null;
}

/** Of instances that many may have a copy of one model, so that no model is everywhere. */
export function copiesMax(instanceCount: number): number {
  return Math.min(instanceCount, Math.max(2, Math.ceil(instanceCount / 2)));
}

/** An instance with so many requests in flight is given no more while another one may serve them. */
export function queueBound(inFlightSum: number, instanceCount: number, limits: PlacementLimits): number {
  return Math.max(limits.queueMin, Math.ceil((limits.loadRatioMax * (inFlightSum + 1)) / instanceCount));
}

/**
 * Where a request for a model goes. Each model ranks the instances by a keyed hash of its name and their ordinals (rendezvous hashing), so
 * that an instance that comes or goes changes the first place of only those models that it gains or held. A request goes to the first
 * in rank that has the model and is not too busy. Where none has it, it is loaded on the first that is not too busy. Where those that
 * have it are too busy, it is brought to the next one; and where the first in rank has come back or is new, it is brought there. A
 * request never waits for a copy beside another. The same state gives the same answer; it takes a few passes over the instances.
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
    // Whoever is hot gets a copy, and not whoever is beside it.
    if (!model.isBusyWith(idlest)) return { serve: idlest, bring: null };
    const next = first(ranked, (each) => model.copyOn(each) === "absent" && isFree(each));
    return { serve: idlest, bring: mayHave(next) };
  }
  // Of one that is being loaded for the first time nobody knows yet what it takes: there is no further copy before.
  const coming = first(ranked, (each) => model.copyOn(each) === "coming");
  return { serve: coming ?? first(ranked, isFree) ?? top, bring: null };
}

/** Whether a model may have a further copy there, one at a time. */
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

/** An instance and the score that a model gives it. */
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

/** The first in a model's rank of those that are so; null where none is. Of equal scores the lower ordinal is first. */
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

/** With the fewest requests of those that are so, of equals the first in rank; null where none is. */
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

/** Of the instances that have a model, the first in rank: the copy that stays when the others are cold. */
export function firstInRank<Instance extends Pick<PlacementCandidate, "ordinal">>(
  instances: readonly [Instance, ...Instance[]],
  model: { readonly key: PlacementKey; readonly target: string },
): Instance {
  return first(rankedBy(model, instances), () => true) ?? instances[0];
}
