const count = 87;
const wordMask = (1n << 24n) - 1n;

/** Returns a fraction of `bits` bits as a double, rounded down or up to 53 bits. */
function fraction(numerator: bigint, bits: bigint, rounding: "down" | "up"): number {
  const part = numerator & ((1n << bits) - 1n);
  const extra = bits - 53n;
  const kept = rounding === "down" ? part >> extra : (part + (1n << extra) - 1n) >> extra;
  return Number(kept) * 2 ** -53;
}

/** Returns 10^power as a 64-bit number with the top bit set, rounded to nearest, times 2^exponent. */
function normalized(power: number): { significand: bigint; exponent: number } {
  const numerator = power >= 0 ? 10n ** BigInt(power) : 1n;
  const denominator = power >= 0 ? 1n : 10n ** BigInt(-power);
  const bits = (value: bigint) => value.toString(2).length;
  // The shift gives the quotient 65 or 66 bits. The bits below the highest 64 only decide the rounding.
  const shift = 65 - (bits(numerator) - bits(denominator));
  const scaled = shift >= 0 ? (numerator << BigInt(shift)) / denominator : numerator / (denominator << BigInt(-shift));
  const extra = bits(scaled) - 64;
  const significand = ((scaled >> BigInt(extra - 1)) + 1n) >> 1n;
  if (significand >> 64n !== 0n) return { significand: significand >> 1n, exponent: extra - shift + 1 };
  return { significand, exponent: extra - shift };
}

/**
 * The powers of ten of Grisu: 10^-348, 10^-340 ... 10^340. `high` * 2^48 + `middle` * 2^24 + `low` is the significand. The distance from a
 * double to the ends of its interval is 2^-54 of the power (2^-55 below a power of two). `above` and `halfBelow` are the integer parts of
 * these distances. The other tables have the fractional parts, rounded down for the upper end and up for the lower end, as the sums in
 * `ShortestDouble` need.
 */
export const cachedPowers = (() => {
  const table = () => new Float64Array(count);
  const [high, middle, low] = [table(), table(), table()];
  const [above, aboveFraction, belowFraction] = [table(), table(), table()];
  const [halfBelow, halfBelowFraction] = [table(), table()];
  const exponent = new Int16Array(count);
  for (let index = 0; index < count; index++) {
    const { significand, exponent: binary } = normalized(8 * index - 348);
    exponent[index] = binary;
    high[index] = Number(significand >> 48n);
    middle[index] = Number((significand >> 24n) & wordMask);
    low[index] = Number(significand & wordMask);
    above[index] = Number(significand >> 54n);
    aboveFraction[index] = fraction(significand, 54n, "down");
    belowFraction[index] = fraction(significand, 54n, "up");
    halfBelow[index] = Number(significand >> 55n);
    halfBelowFraction[index] = fraction(significand, 55n, "up");
  }
  return { high, middle, low, exponent, above, aboveFraction, belowFraction, halfBelow, halfBelowFraction };
})();
