import { ModelRank, type PlacementKey } from "./model-rank.ts";

/** Ranks that are remembered for each model. Requests need lower ranks only if all of these instances are too busy or full. */
const topMax = 16;
/** Maximum number of models of which ranks are remembered. The least recently requested model is forgotten first. */
const modelsMax = 4096;

interface Ordinal {
  readonly ordinal: number;
}

/**
 * The ranking of a fleet's instances for each model. The highest ranks of recently requested models are remembered until
 * the instances change: at 10,000 instances, scoring all of them takes 50 times as long as the rest of a routing decision
 * (row `scale` of the benchmarks).
 */
export class ModelRanks {
  readonly key: PlacementKey;
  readonly #tops = new Map<string, Uint32Array>();
  #ordinals = new Float64Array(0);

  constructor(key: PlacementKey) {
    this.key = key;
  }

  /** Returns the ranking of the instances for a model. It is valid until the list of instances changes. */
  of<Instance extends Ordinal>(target: string, instances: readonly Instance[]): InstanceRanking<Instance> {
    if (!this.#isOf(instances)) {
      this.#ordinals = Float64Array.from(instances, ({ ordinal }) => ordinal);
      this.#tops.clear();
    }
    let top = this.#tops.get(target);
    if (top === undefined) top = topOf(new ModelRank(this.key, target), this.#ordinals);
    else this.#tops.delete(target);
    this.#tops.set(target, top);
    const [oldest] = this.#tops.keys();
    if (this.#tops.size > modelsMax && oldest !== undefined) this.#tops.delete(oldest);
    return new InstanceRanking(instances, top, { key: this.key, target });
  }

  #isOf(instances: readonly Ordinal[]): boolean {
    const ordinals = this.#ordinals;
    if (ordinals.length !== instances.length) return false;
    for (let position = 0; position < ordinals.length; position += 1)
      if (ordinals[position] !== instances[position]!.ordinal) return false;
    return true;
  }
}

/** Instances, and the order in which they are preferred for one model: by score, and for equal scores by ordinal. */
export class InstanceRanking<Instance extends Ordinal> {
  readonly instances: readonly Instance[];
  readonly #top: Uint32Array;
  readonly #model: { readonly key: PlacementKey; readonly target: string };

  /** `top` has the positions of the highest-ranked instances, in order. */
  constructor(
    instances: readonly Instance[],
    top: Uint32Array,
    model: { readonly key: PlacementKey; readonly target: string },
  ) {
    this.instances = instances;
    this.#top = top;
    this.#model = model;
  }

  /** Returns the highest-ranked instance that satisfies the condition; null if there is none. */
  first(isSo: (instance: Instance) => boolean): Instance | null {
    for (const position of this.#top) {
      const instance = this.instances[position]!;
      if (isSo(instance)) return instance;
    }
    if (this.#top.length === this.instances.length) return null;
    const rank = new ModelRank(this.#model.key, this.#model.target);
    let best: { readonly instance: Instance; readonly score: number } | null = null;
    for (const instance of this.instances) {
      if (!isSo(instance)) continue;
      const score = rank.scoreOf(instance.ordinal);
      if (best === null || isHigher(score, instance.ordinal, best.score, best.instance.ordinal))
        best = { instance, score };
    }
    return best?.instance ?? null;
  }
}

function isHigher(score: number, ordinal: number, otherScore: number, otherOrdinal: number): boolean {
  return score > otherScore || (score === otherScore && ordinal < otherOrdinal);
}

/** Returns the positions of the highest-ranked ordinals, in order. */
function topOf(rank: ModelRank, ordinals: Float64Array): Uint32Array {
  const positions = new Uint32Array(Math.min(topMax, ordinals.length));
  const scores = new Float64Array(positions.length);
  let count = 0;
  for (let position = 0; position < ordinals.length; position += 1) {
    const ordinal = ordinals[position]!;
    const score = rank.scoreOf(ordinal);
    const isAbove = (index: number) => isHigher(score, ordinal, scores[index]!, ordinals[positions[index]!]!);
    if (count === positions.length && !isAbove(count - 1)) continue;
    let index = Math.min(count, positions.length - 1);
    for (; index > 0 && isAbove(index - 1); index -= 1) {
      scores[index] = scores[index - 1]!;
      positions[index] = positions[index - 1]!;
    }
    scores[index] = score;
    positions[index] = position;
    count = Math.min(count + 1, positions.length);
  }
  return positions;
}
