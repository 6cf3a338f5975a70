import { createHash } from "node:crypto";

/** A secret 64-bit key in hexadecimal. Without the key, callers cannot predict the instance that serves a model name. */
export type PlacementKey = string;

/** Derives a key from a text, for owners without a random key. */
export function derivePlacementKey(text: string): PlacementKey {
  return createHash("sha256").update(text).digest("hex").slice(0, 16);
}

/**
 * The ranking of instances for one model: a score for each ordinal. The score is HalfSipHash-2-4 with 64 bits (J.-P.
 * Aumasson and D. J. Bernstein, "SipHash: a fast short-input PRF", 2012) of the model's name in UTF-16, padded to words
 * of four bytes, its length and the ordinal. The hash is keyed so that callers cannot construct names that all prefer one
 * instance. The name is hashed once for all ordinals.
 */
export class ModelRank {
  #v0 = 0;
  #v1 = 0;
  #v2 = 0;
  #v3 = 0;
  readonly #named: readonly [number, number, number, number];
  readonly #byteLength: number;

  constructor(key: PlacementKey, target: string) {
    const [k0, k1] = [swapped(Number.parseInt(key.slice(0, 8), 16)), swapped(Number.parseInt(key.slice(8), 16))];
    [this.#v0, this.#v1, this.#v2, this.#v3] = [k0, k1 ^ 0xee, 0x6c796765 ^ k0, 0x74656462 ^ k1];
    const { length } = target;
    for (let index = 0; index < length; index += 2) {
      // After the end of the text, charCodeAt returns NaN, which the bitwise operators convert to 0.
      this.#absorb(target.charCodeAt(index) | (target.charCodeAt(index + 1) << 16));
    }
    this.#absorb(length);
    this.#named = [this.#v0, this.#v1, this.#v2, this.#v3];
    this.#byteLength = Math.ceil(length / 2) * 4 + 8;
  }

  /** Returns the upper 53 bits of the hash, which a number represents exactly. */
  scoreOf(ordinal: number): number {
    [this.#v0, this.#v1, this.#v2, this.#v3] = this.#named;
    this.#absorb(ordinal);
    this.#absorb(this.#byteLength << 24);
    this.#v2 ^= 0xee;
    this.#rounds(4);
    const low = (this.#v1 ^ this.#v3) >>> 0;
    this.#v1 ^= 0xdd;
    this.#rounds(4);
    const high = (this.#v1 ^ this.#v3) >>> 0;
    return high * 2 ** 21 + (low >>> 11);
  }

  #absorb(word: number): void {
    this.#v3 ^= word;
    this.#rounds(2);
    this.#v0 ^= word;
  }

  #rounds(count: number): void {
    let [v0, v1, v2, v3] = [this.#v0, this.#v1, this.#v2, this.#v3];
    for (let round = 0; round < count; round += 1) {
      v0 = (v0 + v1) | 0;
      v1 = rotated(v1, 5) ^ v0;
      v0 = rotated(v0, 16);
      v2 = (v2 + v3) | 0;
      v3 = rotated(v3, 8) ^ v2;
      v0 = (v0 + v3) | 0;
      v3 = rotated(v3, 7) ^ v0;
      v2 = (v2 + v1) | 0;
      v1 = rotated(v1, 13) ^ v2;
      v2 = rotated(v2, 16);
    }
    [this.#v0, this.#v1, this.#v2, this.#v3] = [v0, v1, v2, v3];
  }
}

const rotated = (word: number, bits: number) => (word << bits) | (word >>> (32 - bits));

/** Reverses the bytes of a word. */
const swapped = (word: number) => (word << 24) | ((word & 0xff00) << 8) | ((word >>> 8) & 0xff00) | (word >>> 24);
