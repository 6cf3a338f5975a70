/** 10^0 to 10^22: the powers of ten that a double holds exactly. */
export const scalePowersOf10: readonly number[] = Array.from({ length: 23 }, (_, exponent) => Number(`1e${exponent}`));

/** Up to 15 digits are exact in a double; scaled once by an exact power the result is correctly rounded (Clinger's case). */
export function isPlainDouble(digits: number): boolean {
  return digits <= 15;
}
