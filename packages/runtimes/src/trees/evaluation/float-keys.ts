/**
 * Floats as integers that have their order: what a walk compares. NaN has two keys, one below all numbers and one above, for nodes that
 * send what is missing to the side of what is below, or to the other. (-0 has the key of 0.)
 */
export const infinityBits = 0x7f80_0000;
const magnitudeBits = 0x7fff_ffff;

export const missingBelowKey = -infinityBits - 1;
export const missingAboveKey = infinityBits + 1;
/** Above the keys of everything. */
export const keyBehind = 0x7fff_ffff;

/** Of a float32 by its bits, as a signed integer. */
export function keyOfBits(bits: number, missingKey: number): number {
  const magnitude = bits & magnitudeBits;
  if (magnitude > infinityBits) return missingKey;
  return bits < 0 ? -magnitude : magnitude;
}

const float = new Float32Array(1);
const bitsOf = new Int32Array(float.buffer);

/** The key that keys of values below the threshold are below; nothing is below NaN, as nothing is below minus infinity. */
export function keyOfThreshold(threshold: number): number {
  float[0] = threshold;
  return keyOfBits(bitsOf[0] as number, -infinityBits);
}
