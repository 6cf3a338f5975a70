import type { SharedContent } from "../objects/index.ts";

/** What holding one model costs: bytes of its own, and contents that are charged once however many models hold them. */
export interface Charge {
  readonly key: string;
  readonly ownBytes: number;
  readonly contents: readonly SharedContent[];
}

/** The bytes a set of models costs together. Used for the loaded set and for the disk cache alike. */
export class ChargedSet {
  readonly #charges = new Map<string, Charge>();
  readonly #references = new Map<string, number>();
  #usedBytes = 0;

  get usedBytes(): number {
    return this.#usedBytes;
  }

  get(key: string): Charge | undefined {
    return this.#charges.get(key);
  }

  /** How many members hold this content. */
  references(id: string): number {
    return this.#references.get(id) ?? 0;
  }

  /** Contents that no member holds. */
  newAmong(contents: readonly SharedContent[]): readonly SharedContent[] {
    return contents.filter(({ id }) => this.references(id) === 0);
  }

  /** What adding `charge` would cost now. */
  costOf(charge: Charge): number {
    let bytes = charge.ownBytes;
    for (const content of charge.contents) if (this.references(content.id) === 0) bytes += content.byteLength;
    return bytes;
  }

  /** Replaces a charge of the same key. */
  set(charge: Charge): void {
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
export function chooseVictims(
  set: ChargedSet,
  candidates: Iterable<Charge>,
  { incoming, capacityBytes }: { readonly incoming: Charge | null; readonly capacityBytes: number },
): Charge[] | null {
  const taken = new Map<string, number>();
  const victims: Charge[] = [];
  const already = incoming === null ? undefined : set.get(incoming.key);
  let usedBytes = set.usedBytes;
  const remove = (charge: Charge) => {
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

/** What a model costs alone, with all it shares. */
export function chargedBytes({ ownBytes, contents }: Charge): number {
  return contents.reduce((sum, { byteLength }) => sum + byteLength, ownBytes);
}

/** A model that cannot fit beside anything is charged the whole capacity: it is tried alone, and the container decides. */
export function clipCharge(charge: Charge, capacityBytes: number): Charge {
  return chargedBytes(charge) <= capacityBytes ? charge : { key: charge.key, ownBytes: capacityBytes, contents: [] };
}

/**
 * What a load will cost. The last measured cost of the same content decides; what was never measured costs its files.
 * Bounded: the least recently learned are forgotten.
 */
export class CostBook {
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
