import type { SharedContent } from "../objects/index.ts";

/** The cost of one model: its own bytes, plus contents that it shares with other models. Each shared content is counted once. */
export interface ModelCost {
  readonly key: string;
  readonly ownBytes: number;
  readonly contents: readonly SharedContent[];
}

/** The total cost of a set of models, in bytes. Counts memory of loaded models, or disk space of unpacked models. */
export class ModelCostSet {
  readonly #charges = new Map<string, ModelCost>();
  readonly #references = new Map<string, number>();
  #usedBytes = 0;

  get usedBytes(): number {
    return this.#usedBytes;
  }

  get(key: string): ModelCost | undefined {
    return this.#charges.get(key);
  }

  /** Returns the number of members that have this content. */
  references(id: string): number {
    return this.#references.get(id) ?? 0;
  }

  /** Returns the contents that no member has. */
  newAmong(contents: readonly SharedContent[]): readonly SharedContent[] {
    return contents.filter(({ id }) => this.references(id) === 0);
  }

  /** Returns the bytes by which adding `charge` would increase the total now. */
  costOf(charge: ModelCost): number {
    let bytes = charge.ownBytes;
    for (const content of charge.contents) if (this.references(content.id) === 0) bytes += content.byteLength;
    return bytes;
  }

  /** Adds a charge, or replaces the charge with the same key. */
  set(charge: ModelCost): void {
    this.remove(charge.key);
    this.#usedBytes += this.costOf(charge);
    this.#charges.set(charge.key, charge);
    for (const { id } of charge.contents) this.#references.set(id, this.references(id) + 1);
  }

  remove(key: string): void {
    const charge = this.#charges.get(key);
    if (charge === undefined) return;
    this.#charges.delete(key);
    this.#usedBytes -= charge.ownBytes;
    for (const { id, byteLength } of charge.contents) {
      const left = this.references(id) - 1;
      if (left > 0) {
        this.#references.set(id, left);
      } else {
        this.#references.delete(id);
        this.#usedBytes -= byteLength;
      }
    }
  }

  clear(): void {
    this.#charges.clear();
    this.#references.clear();
    this.#usedBytes = 0;
  }
}

/**
 * Returns the models to evict so that `incoming` fits into `capacityBytes`: the shortest run from the start of `candidates` (least
 * recently used first). Returns an empty list if `incoming` fits already, and null if evicting all candidates does not suffice. If
 * evictions free a content that `incoming` needs too, its bytes count for `incoming`.
 */
export function chooseEvictions(
  set: ModelCostSet,
  candidates: Iterable<ModelCost>,
  { incoming, capacityBytes }: { readonly incoming: ModelCost | null; readonly capacityBytes: number },
): ModelCost[] | null {
  const acquired = new Map<string, number>();
  const victims: ModelCost[] = [];
  const already = incoming === null ? undefined : set.get(incoming.key);
  let usedBytes = set.usedBytes;
  const remove = (charge: ModelCost) => {
    usedBytes -= charge.ownBytes;
    for (const { id, byteLength } of charge.contents) {
      const count = (acquired.get(id) ?? 0) + 1;
      acquired.set(id, count);
      if (set.references(id) === count) usedBytes -= byteLength;
    }
  };
  const fits = () => {
    let bytes = usedBytes;
    if (incoming !== null) {
      bytes += incoming.ownBytes;
      for (const { id, byteLength } of incoming.contents) {
        if (set.references(id) - (acquired.get(id) ?? 0) <= 0) bytes += byteLength;
      }
    }
    return bytes <= capacityBytes;
  };
  if (already !== undefined) remove(already);
  if (fits()) return victims;
  for (const candidate of candidates) {
    if (candidate.key === incoming?.key) continue;
    remove(candidate);
    victims.push(candidate);
    if (fits()) return victims;
  }
  return null;
}

/** Returns the cost of a model if no other model shares its contents. */
export function costBytes({ ownBytes, contents }: ModelCost): number {
  return contents.reduce((sum, { byteLength }) => sum + byteLength, ownBytes);
}

/** Clips a charge to the capacity. A model with a higher estimate is loaded alone, and the container decides if it fits. */
export function limitCost(charge: ModelCost, capacityBytes: number): ModelCost {
  return costBytes(charge) <= capacityBytes ? charge : { key: charge.key, ownBytes: capacityBytes, contents: [] };
}

/**
 * Estimates the memory of a load: the last measured cost of the same content, or else the size of the model's files. The number of
 * measurements is bounded; the oldest are dropped.
 */
export class LoadCostHistory {
  readonly #ownBytes = new Map<string, number>();
  readonly #entriesMax: number;
  readonly #floorBytes: number;

  constructor(options: { readonly entriesMax: number; readonly floorBytes: number }) {
    this.#entriesMax = options.entriesMax;
    this.#floorBytes = options.floorBytes;
  }

  estimateOwnBytes(fingerprint: string, fileBytes: number): number {
    return this.#ownBytes.get(fingerprint) ?? Math.max(fileBytes, this.#floorBytes);
  }

  learn(fingerprint: string, ownBytes: number): void {
    this.#ownBytes.delete(fingerprint);
    this.#ownBytes.set(fingerprint, ownBytes);
    if (this.#ownBytes.size > this.#entriesMax) {
      const [oldest] = this.#ownBytes.keys();
      if (oldest !== undefined) this.#ownBytes.delete(oldest);
    }
  }
}
