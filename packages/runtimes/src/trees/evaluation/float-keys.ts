/**
 * Order-preserving conversion of floats to integers, which tree evaluation compares. NaN has two keys, one below all numbers and one
 * above, for nodes that send missing values to the lower or to the upper side. (-0 has the key of 0.)
 */
export const infinityBits = 0x7f80_0000;
const magnitudeBits = 0x7fff_ffff;

export const missingBelowKey = -infinityBits - 1;
export const missingAboveKey = infinityBits + 1;
/** Greater than all keys. */
export const keyMax = 0x7fff_ffff;

/** Returns the key of a float32 from its bits, as a signed integer. */
export function keyOfBits(bits: number, missingKey: number): number {
  const magnitude = bits & magnitudeBits;
  if (magnitude > infinityBits) return missingKey;
  return bits < 0 ? -magnitude : magnitude;
}

const float = new Float32Array(1);
const bitsOf = new Int32Array(float.buffer);

/** Returns the key that is greater than the keys of all values below the threshold; nothing is below NaN or minus infinity. */
export function keyOfThreshold(threshold: number): number {
  float[0] = threshold;
  return keyOfBits(bitsOf[0] as number, -infinityBits);
}
