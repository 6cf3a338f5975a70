/** Significands of 10^-348, 10^-340 ... 10^340 as 64-bit numbers with the top bit set (high and low word), and their exponents. */
const powers = (() => {
  const count = 87;
  const high = new Uint32Array(count);
  const low = new Uint32Array(count);
  const exponent = new Int16Array(count);
  for (let index = 0; index < count; index++) {
    const power = 8 * index - 348;
    let numerator = power >= 0 ? 10n ** BigInt(power) : 1n;
    const denominator = power >= 0 ? 1n : 10n ** BigInt(-power);
    const bits = (value: bigint) => value.toString(2).length;
    // Scaled so that the quotient has 64 or 65 bits, then rounded to 64.
    const shift = 65 - (bits(numerator) - bits(denominator));
    let scaled = shift >= 0 ? (numerator << BigInt(shift)) / denominator : numerator / (denominator << BigInt(-shift));
    const extra = bits(scaled) - 64;
    numerator = scaled >> BigInt(extra - 1);
    scaled = (numerator + 1n) >> 1n;
    const carried = bits(scaled) > 64;
    if (carried) scaled >>= 1n;
    high[index] = Number(scaled >> 32n);
    low[index] = Number(scaled & 0xffff_ffffn);
    exponent[index] = extra - shift + (carried ? 1 : 0);
  }
  return { high, low, exponent };
})();

const word = 2 ** 32;
/** Divisions by powers of two are exact as products with their inverses, and several times as fast. */
const perWord = 2 ** -32;
const perHalf = 2 ** -16;
const powersOf2 = Array.from({ length: 29 }, (_, exponent) => 2 ** exponent);
const inversePowersOf2 = powersOf2.map((power) => 1 / power);
const powersOf10 = Array.from({ length: 10 }, (_, exponent) => 10 ** exponent);

/**
 * Decimal digits of a positive double by Loitsch's Grisu2 (PLDI 2010), with 64-bit numbers as pairs of 32-bit words. It always
 * reads back as the same double and is the shortest in all but about one in a thousand; chosen because tritonserver prints by
 * it, rounding of the last digit left out beyond nine fractional digits as there: 0.3 as FP32 is 0.30000001192092898.
 * (About 0.3 us a number; String(value) takes 0.25 us for fresh values.) The result stands in `digits`, `length` and `exponent`:
 * digits * 10^exponent.
 */
export class ShortestDouble {
  readonly digits = new Uint8Array(24);
  length = 0;
  exponent = 0;
  readonly #double = new Float64Array(1);
  readonly #words = new Uint32Array(this.#double.buffer);
  /** Result of `#multiply`. */
  #high = 0;
  #low = 0;

  /** False for what the method is not made for (zero, subnormal, infinite, NaN): the caller prints those otherwise. */
  generate(value: number): boolean {
    this.#double[0] = value;
    const top = this.#words[1]!;
    const bottom = this.#words[0]!;
    const biased = (top >>> 20) & 0x7ff;
    if (biased === 0 || biased === 0x7ff) return false;
    // The significand moved up to bit 63; its neighbours' midpoints lie 2^10 away (2^9 below a power of two).
    const fraction = (top & 0xfffff) | 0x100000;
    const valueHigh = ((fraction << 11) | (bottom >>> 21)) >>> 0;
    const valueLow = (bottom << 11) >>> 0;
    const scale = biased - 1075 - 11;
    const index = this.#powerIndex(scale);
    this.exponent = 348 - 8 * index;
    const binary = scale + powers.exponent[index]! + 64;

    this.#multiply(valueHigh, valueLow, index);
    const centreHigh = this.#high;
    const centreLow = this.#low;
    const below = fraction === 0x100000 && bottom === 0 ? 512 : 1024;
    const lowBelow = valueLow - below;
    this.#multiply(lowBelow < 0 ? valueHigh - 1 : valueHigh, lowBelow < 0 ? lowBelow + word : lowBelow, index);
    const bottomHigh = this.#high;
    const bottomLow = this.#low + 1;
    const lowAbove = valueLow + 1024;
    this.#multiply(lowAbove >= word ? valueHigh + 1 : valueHigh, lowAbove >= word ? lowAbove - word : lowAbove, index);
    let topHigh = this.#high;
    let topLow = this.#low - 1;
    if (topLow < 0) {
      topLow += word;
      topHigh--;
    }
    let deltaLow = topLow - bottomLow;
    let deltaHigh = topHigh - bottomHigh;
    if (deltaLow < 0) {
      deltaLow += word;
      deltaHigh--;
    }
    let gapLow = topLow - centreLow;
    let gapHigh = topHigh - centreHigh;
    if (gapLow < 0) {
      gapLow += word;
      gapHigh--;
    }
    this.#digits(-binary, topHigh, topLow, deltaHigh, deltaLow, gapHigh, gapLow);
    return true;
  }

  #powerIndex(scale: number): number {
    const wanted = (-61 - scale) * 0.30102999566398114 + 347;
    return (Math.ceil(wanted) >> 3) + 1;
  }

  /** High 64 bits, rounded, of (high, low) times the cached power. */
  #multiply(high: number, low: number, index: number): void {
    const otherHigh = powers.high[index]!;
    const otherLow = powers.low[index]!;
    // Products of 16 by 32 bits are exact in a double; `%` on doubles would be a call of fmod, so remainders are subtractions.
    const highTop = otherHigh >>> 16;
    const highBottom = otherHigh & 0xffff;
    const lowTop = otherLow >>> 16;
    const lowBottom = otherLow & 0xffff;
    // a: other.high * high, b: other.low * high, c: other.high * low, d: other.low * low; sums of 16-bit columns.
    const a0 = highBottom * high;
    const b0 = lowBottom * high;
    const c0 = highBottom * low;
    const aCarry = Math.floor(a0 * perHalf);
    const bCarry = Math.floor(b0 * perHalf);
    const cCarry = Math.floor(c0 * perHalf);
    const aTop = aCarry + highTop * high;
    const bTop = bCarry + lowTop * high;
    const cTop = cCarry + highTop * low;
    const aHigh = Math.floor(aTop * perHalf);
    const bHigh = Math.floor(bTop * perHalf);
    const cHigh = Math.floor(cTop * perHalf);
    const aLow = (aTop - aHigh * 65536) * 65536 + (a0 - aCarry * 65536);
    const bLow = (bTop - bHigh * 65536) * 65536 + (b0 - bCarry * 65536);
    const cLow = (cTop - cHigh * 65536) * 65536 + (c0 - cCarry * 65536);
    const dHigh = Math.floor((Math.floor(lowBottom * low * perHalf) + lowTop * low) * perHalf);
    const middle = dHigh + bLow + cLow + 2 ** 31;
    const resultLow = bHigh + cHigh + aLow + Math.floor(middle * perWord);
    const carry = Math.floor(resultLow * perWord);
    this.#low = resultLow - carry * word;
    this.#high = aHigh + carry;
  }

  /** Digits from the upper boundary down until what is left fits the interval. `shift` is 32 to 60. */
  #digits(
    shift: number,
    topHigh: number,
    topLow: number,
    deltaHigh: number,
    deltaLow: number,
    gapHigh: number,
    gapLow: number,
  ): void {
    const { digits } = this;
    const unit = powersOf2[shift - 32]!;
    const perUnit = inversePowersOf2[shift - 32]!;
    let whole = Math.floor(topHigh * perUnit);
    let restHigh = topHigh - whole * unit;
    let restLow = topLow;
    let length = 0;
    let kappa = 1;
    while (kappa < 9 && whole >= powersOf10[kappa]!) kappa++;
    while (kappa > 0) {
      const power = powersOf10[--kappa]!;
      const digit = Math.floor(whole / power);
      whole -= digit * power;
      if (digit !== 0 || length !== 0) digits[length++] = digit;
      const leftHigh = whole * unit + restHigh;
      if (leftHigh < deltaHigh || (leftHigh === deltaHigh && restLow <= deltaLow)) {
        this.length = length;
        this.exponent += kappa;
        if (leftHigh < gapHigh || (leftHigh === gapHigh && restLow < gapLow)) {
          const step = BigInt(power) << BigInt(shift);
          this.#round(wide(deltaHigh, deltaLow), wide(leftHigh, restLow), step, wide(gapHigh, gapLow));
        }
        return;
      }
    }
    for (;;) {
      restLow *= 10;
      const restCarry = Math.floor(restLow * perWord);
      restLow -= restCarry * word;
      restHigh = restHigh * 10 + restCarry;
      deltaLow *= 10;
      const deltaCarry = Math.floor(deltaLow * perWord);
      deltaLow -= deltaCarry * word;
      deltaHigh = deltaHigh * 10 + deltaCarry;
      const digit = Math.floor(restHigh * perUnit);
      restHigh -= digit * unit;
      if (digit !== 0 || length !== 0) digits[length++] = digit;
      kappa--;
      if (restHigh < deltaHigh || (restHigh === deltaHigh && restLow < deltaLow)) {
        this.length = length;
        this.exponent += kappa;
        if (-kappa < 9) {
          const gap = wide(gapHigh, gapLow) * BigInt(powersOf10[-kappa]!);
          this.#round(wide(deltaHigh, deltaLow), wide(restHigh, restLow), 1n << BigInt(shift), gap);
        }
        return;
      }
    }
  }

  /** Moves the last digit towards the value while that brings it nearer and stays inside the interval. */
  #round(delta: bigint, rest: bigint, step: bigint, gap: bigint): void {
    const last = this.length - 1;
    while (rest < gap && delta - rest >= step && (rest + step < gap || gap - rest > rest + step - gap)) {
      this.digits[last]!--;
      rest += step;
    }
  }
}

function wide(high: number, low: number): bigint {
  return (BigInt(high) << 32n) + BigInt(low);
}
