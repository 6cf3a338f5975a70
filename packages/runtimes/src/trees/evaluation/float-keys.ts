/**
 * Order-preserving conversion of floats to integer keys, which the evaluation of trees compares. NaN has two keys: one is less than all
 * numbers and one greater, for nodes that send missing values to the lower or to the upper side. -0 and 0 have the same key.
 */
export const infinityBits = 0x7f80_0000;
const magnitudeBits = 0x7fff_ffff;

export const missingBelowKey = -infinityBits - 1;
export const missingAboveKey = infinityBits + 1;
/** A key that is greater than the keys of all values, including NaN. */
export const keyMax = 0x7fff_ffff;

/** Returns the key of a float32 from its bits, as a signed integer. */
export function keyOfBits(bits: number, missingKey: number): number {
  const magnitude = bits & magnitudeBits;
  if (magnitude > infinityBits) return missingKey;
  return bits < 0 ? -magnitude : magnitude;
}

const float = new Float32Array(1);
const bitsOf = new Int32Array(float.buffer);

/** Returns the smallest key that no value below the threshold reaches. No number is below NaN or minus infinity. */
export function keyOfThreshold(threshold: number): number {
  float[0] = threshold;
  return keyOfBits(bitsOf[0] as number, -infinityBits);
}
