import type { SharedContent } from "../objects/index.ts";

/** The cost of one model: its own bytes, and shared contents, each counted once for all models that have it. */
export interface ModelCost {
  readonly key: string;
  readonly ownBytes: number;
  readonly contents: readonly SharedContent[];
}

/** The total cost of a set of models, in bytes. Used for loaded models and for the disk cache. */
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

  /** Returns the bytes that adding `charge` would cost now. */
  costOf(charge: ModelCost): number {
    let bytes = charge.ownBytes;
    for (const content of charge.contents) if (this.references(content.id) === 0) bytes += content.byteLength;
    return bytes;
  }

  /** Replaces a charge of the same key. */
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
 * The shortest run of `candidates` (least recently used first) whose removal lets `incoming` fit under `capacityBytes`;
 * empty when it fits as it is, null when not even removing all of them suffices. Content that a victim frees is charged
 * to `incoming` if it holds it too.
 */
export function chooseEvictions(
  set: ModelCostSet,
  candidates: Iterable<ModelCost>,
  { incoming, capacityBytes }: { readonly incoming: ModelCost | null; readonly capacityBytes: number },
): ModelCost[] | null {
  const taken = new Map<string, number>();
  const victims: ModelCost[] = [];
  const already = incoming === null ? undefined : set.get(incoming.key);
  let usedBytes = set.usedBytes;
  const remove = (charge: ModelCost) => {
    usedBytes -= charge.ownBytes;
    for (const { id, byteLength } of charge.contents) {
      const count = (taken.get(id) ?? 0) + 1;
      taken.set(id, count);
      if (set.references(id) === count) usedBytes -= byteLength;
    }
  };
  const fits = () => {
    let bytes = usedBytes;
    if (incoming !== null) {
      bytes += incoming.ownBytes;
      for (const { id, byteLength } of incoming.contents) {
        if (set.references(id) - (taken.get(id) ?? 0) <= 0) bytes += byteLength;
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

/** Returns the cost of a model alone, shared contents included. */
export function costBytes({ ownBytes, contents }: ModelCost): number {
  return contents.reduce((sum, { byteLength }) => sum + byteLength, ownBytes);
}

/** Clips a charge to the capacity. A model that is estimated above it is loaded alone, and the container decides whether it fits. */
export function limitCost(charge: ModelCost, capacityBytes: number): ModelCost {
  return costBytes(charge) <= capacityBytes ? charge : { key: charge.key, ownBytes: capacityBytes, contents: [] };
}

/**
 * Estimates the memory of a load: the last measured cost of the same content, or the size of its files where none was measured.
 * Bounded; the oldest measurements are dropped.
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
