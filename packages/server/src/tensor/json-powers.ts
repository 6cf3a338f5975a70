/** 10^0 to 10^22: the powers of ten that a double represents exactly. */
export const scalePowersOf10: readonly number[] = Array.from({ length: 23 }, (_, exponent) => Number(`1e${exponent}`));

/**
 * Returns whether a number with this many digits is exact in a double, so that scaling it once by an exact power is correctly rounded
 * (Clinger's case).
 */
export function isPlainDouble(digits: number): boolean {
  return digits <= 15;
}
