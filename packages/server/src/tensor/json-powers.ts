/** 10^0 to 10^22: the powers of ten that a double represents exactly. */
export const scalePowersOf10: readonly number[] = Array.from({ length: 23 }, (_, exponent) => Number(`1e${exponent}`));

/**
 * Returns whether an integer of this many digits is exact in a double. Multiplying or dividing it once by an exact power of ten is then
 * correctly rounded (Clinger's fast path).
 */
export function isPlainDouble(digits: number): boolean {
  return digits <= 15;
}
