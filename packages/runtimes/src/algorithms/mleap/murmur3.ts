/** Spark's seed for hashing terms. */
const seed = 42;

/**
 * Returns the 32-bit MurmurHash3 of Spark's `HashingTF`, as a signed integer. The versions differ in the bytes after the last whole word:
 * version 1 (Spark 2) mixes in each byte separately, as a signed number; version 2 mixes them in as one word, like other implementations.
 */
export function murmur3(bytes: Uint8Array, version: 1 | 2): number {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const aligned = bytes.length - (bytes.length % 4);
  let hash = seed;
  for (let at = 0; at < aligned; at += 4) hash = mixedHash(hash, mixedWord(view.getInt32(at, true)));
  if (version === 1) {
    for (let at = aligned; at < bytes.length; at += 1) hash = mixedHash(hash, mixedWord(view.getInt8(at)));
  } else {
    let word = 0;
    for (let at = aligned, shift = 0; at < bytes.length; at += 1, shift += 8) word ^= view.getUint8(at) << shift;
    hash ^= mixedWord(word);
  }
  return final(hash, bytes.length);
}

function rotated(value: number, bits: number): number {
  return (value << bits) | (value >>> (32 - bits));
}

function mixedWord(word: number): number {
  return Math.imul(rotated(Math.imul(word, 0xcc9e2d51), 15), 0x1b873593);
}

function mixedHash(hash: number, word: number): number {
  return (Math.imul(rotated(hash ^ word, 13), 5) + 0xe6546b64) | 0;
}

function final(mixed: number, byteLength: number): number {
  let hash = mixed ^ byteLength;
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return hash ^ (hash >>> 16);
}
