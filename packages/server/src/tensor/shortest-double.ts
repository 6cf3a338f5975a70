import { cachedPowers as powers } from "./cached-powers.ts";

const limbBits = 24;
const limb = 2 ** limbBits;
/** Multiplying by the inverse of a power of two is exact, and several times as fast as dividing. */
const perLimb = 1 / limb;
const powersOf2 = Float64Array.from({ length: 54 }, (_, exponent) => 2 ** exponent);
const inversePowersOf2 = powersOf2.map((power) => 1 / power);
const powersOf5 = Float64Array.from({ length: 17 }, (_, exponent) => 5 ** exponent);
const powersOf10 = Int32Array.from({ length: 10 }, (_, exponent) => 10 ** exponent);

/** Number of fractional digits of the first step: 5^7 times the 36 highest bits still fits the 53 bits of a double. */
const firstCount = 7;
const firstPower = 5 ** firstCount;
/** Number of fractional digits after which the remainder is inside even the narrowest interval (767), by number of fractional bits. */
const counts = Uint8Array.from({ length: 61 }, (_, bits) =>
  Math.max(0, Math.ceil((bits - Math.log2(767)) * Math.log10(2))),
);
/** Index of the power that scales a double with this biased exponent to 34 to 60 fractional bits. */
const powerIndexes = Uint8Array.from(
  { length: 2047 },
  (_, biased) => (Math.ceil((1025 - biased) * Math.log10(2) + 347) >> 3) + 1,
);
/** Triton does not round the last digit when there are more fractional digits than this. */
const roundedCountMax = 8;

/**
 * Prints positive doubles by Loitsch's Grisu2 (PLDI 2010). The text always reads back as the same double and is the shortest in all but
 * about one in a thousand. Tritonserver prints by this algorithm, with its rounding of the last digit: 0.3 as FP32 is 0.30000001192092898.
 *
 * The published method computes three 64-bit products with a power of ten (of the value and of both ends of its interval). It then computes
 * one digit at a time until the remainder fits the interval. Here one exact product serves all three, because the ends differ by a fixed
 * fraction of the power. Digits are computed seven at once, then up to nine at once, and surplus digits are dropped. An FP32 number takes
 * about 0.11 us and an FP64 number 0.15 us; the published method took 0.28 and 0.35 us.
 */
export class ShortestDouble {
  readonly #double = new Float64Array(1);
  readonly #words = new Uint32Array(this.#double.buffer);
  /**
   * The upper end of the interval (high * 2^24 + low), the width of the interval, the distance of the value from the upper end, and the
   * remainder after the digits so far.
   */
  readonly #left = { high: 0.5, low: 0.5, delta: 0.5, gap: 0.5, rest: 0.5 };
  #dropped = 0;

  /** Writes a positive, finite, normal double and returns the end of its text; up to 40 bytes from `at` are overwritten. */
  write(text: DataView, at: number, value: number): number {
    this.#double[0] = value;
    const upper = this.#words[1]!;
    const lower = this.#words[0]!;
    const index = powerIndexes[upper >>> 20]!;
    this.#multiply((((upper & 0xfffff) | 0x100000) << 3) | (lower >>> 29), lower & 0x1fffffff, index);
    // Number of fractional bits of the 64-bit product, 34 to 60.
    const shift = (1022 - (upper >>> 20) - powers.exponent[index]!) | 0;
    const exponent = 348 - 8 * index;
    const left = this.#left;

    let { high, low } = left;
    let total = (high * inversePowersOf2[shift - limbBits]!) | 0;
    high -= total * powersOf2[shift - limbBits]!;
    if (high === 0 && low <= left.delta) {
      let zeros = 0;
      for (; total % 10 === 0; total /= 10) zeros++;
      return writeText(text, at, exponent + zeros, total, 0, 0, 0, 0);
    }
    // Multiplying by 10^7 is multiplying by 5^7 and moving the point by seven bits.
    let point = shift - limbBits - firstCount;
    low *= firstPower;
    let carry = Math.floor(low * perLimb);
    low -= carry * limb;
    high = high * firstPower + carry;
    const first = (high * inversePowersOf2[point]!) | 0;
    high -= first * powersOf2[point]!;
    left.rest = high * limb + low;
    if (left.rest < left.delta * firstPower) {
      const kept = this.#trim(first, firstCount, shift);
      return writeText(text, at, exponent, total, kept, firstCount - this.#dropped, 0, 0);
    }
    const count = counts[shift]!;
    const factor = powersOf5[count - firstCount]!;
    point = shift - limbBits - count;
    low *= factor;
    carry = Math.floor(low * perLimb);
    high = high * factor + carry;
    const second = (high * inversePowersOf2[point]!) | 0;
    left.rest = (high - second * powersOf2[point]!) * limb + (low - carry * limb);
    const kept = this.#trim(second, count, shift);
    return writeText(text, at, exponent, total, first, firstCount, kept, count - firstCount - this.#dropped);
  }

  /** Computes the product of a double's upper 24 and lower 29 bits with a power, rounded half up to 64 bits, and its interval. */
  #multiply(top: number, tail: number, index: number): void {
    const product0 = top * powers.low[index]!;
    const carry0 = Math.floor(product0 * perLimb);
    const product1 = top * powers.middle[index]! + carry0;
    const carry1 = Math.floor(product1 * perLimb);
    let fraction = product0 * perLimb - carry0;
    let low = product1 - carry1 * limb;
    const high = top * powers.high[index]! + carry1;
    // Adds the product of the lower bits, scaled by 2^-29; a value from FP32 has no lower bits.
    if (tail !== 0) {
      const tail0 = tail * powers.low[index]!;
      const tailCarry0 = Math.floor(tail0 * perLimb);
      const tail1 = tail * powers.middle[index]! + tailCarry0;
      const tailCarry1 = Math.floor(tail1 * perLimb);
      const tail2 = (tail * powers.high[index]! + tailCarry1) * 2 ** -5;
      const total = Math.floor(tail2);
      // The sum of both fractions could need a 54th bit; subtracting one first avoids this.
      fraction -= 1;
      fraction += tail2 - total + (tail1 - tailCarry1 * limb) * 2 ** -29 + (tail0 - tailCarry0 * limb) * 2 ** -53;
      low += total;
      if (fraction < 0) fraction += 1;
      else low += 1;
    }
    // Uses Math.floor instead of comparisons, whose branches are unpredictable.
    const up = Math.floor(fraction + 0.5);
    fraction -= up - 0.5;

    // The interval is narrowed by one unit at both ends.
    const gap = powers.above[index]! + Math.floor(fraction + powers.aboveFraction[index]!) - 1;
    const below =
      top === 0x800000 && tail === 0
        ? powers.halfBelow[index]! - Math.floor(fraction - powers.halfBelowFraction[index]!) - 1
        : powers.above[index]! - Math.floor(fraction - powers.belowFraction[index]!) - 1;
    low += up + gap;
    const carry = Math.floor(low * perLimb);
    const left = this.#left;
    left.high = high + carry;
    left.low = low - carry * limb;
    left.gap = gap;
    left.delta = gap + below;
  }

  /** Drops the last of `count` fractional digits while the remainder stays inside the interval, and rounds the new last one. */
  #trim(digits: number, count: number, shift: number): number {
    const left = this.#left;
    const delta = left.delta * powersOf5[count]!;
    let { rest } = left;
    let step = powersOf2[shift - count]!;
    let kept = digits;
    let dropped = 0;
    for (;;) {
      const tenth = ((kept | 0) / 10) | 0;
      const longer = rest + (kept - tenth * 10) * step;
      if (longer >= delta) break;
      rest = longer;
      step *= 10;
      kept = tenth;
      dropped++;
    }
    this.#dropped = dropped;
    if (count - dropped > roundedCountMax) return kept;
    // Moves the last digit towards the value while that is nearer and inside the interval.
    const gap = left.gap * powersOf5[count]!;
    while (rest < gap && delta - rest >= step && (rest + step < gap || gap - rest > rest + step - gap)) {
      kept--;
      rest += step;
    }
    return kept;
  }
}

/** Writes plain text from 10^-6 up to 10^21, else with an exponent. The thresholds are the same in JavaScript and in Triton. */
function writeText(
  text: DataView,
  at: number,
  exponent: number,
  total: number,
  first: number,
  firstCount: number,
  second: number,
  secondCount: number,
): number {
  const wholeCount = countDigits(total);
  const point = wholeCount + exponent;
  const plain = point > -6 && point <= 21;
  const lead = plain ? point : 1;
  const start = lead > 0 ? at + 1 : at + 2 - lead;
  const middle = start + wholeCount + firstCount;
  let end = middle + secondCount;
  // Writes nine digits at a time, because the CPU mispredicts the end of loops of variable length. The next write overwrites trailing
  // zeros.
  write9Digits(text, start, Math.imul(total, powersOf10[9 - wholeCount]!));
  if (firstCount > 0) write9Digits(text, start + wholeCount, Math.imul(first, powersOf10[9 - firstCount]!));
  if (secondCount > 0) write9Digits(text, middle, Math.imul(second, powersOf10[9 - secondCount]!));
  if (lead <= 0) {
    text.setUint8(at, 0x30);
    text.setUint8(at + 1, 0x2e);
    for (let i = at + 2; i < start; i++) text.setUint8(i, 0x30);
    return end;
  }
  // The digits were written one byte further right, which leaves space for the decimal point.
  const length = end - start;
  for (let i = 0; i < lead && i < length; i++) text.setUint8(at + i, text.getUint8(start + i));
  if (lead < length) text.setUint8(at + lead, 0x2e);
  else {
    for (let i = length; i < lead; i++) text.setUint8(at + i, 0x30);
    end = at + lead;
    if (plain) {
      text.setUint8(end++, 0x2e);
      text.setUint8(end++, 0x30);
    }
  }
  return plain ? end : writeExponent(text, end, point - 1);
}

function writeExponent(text: DataView, at: number, exponent: number): number {
  let end = at;
  text.setUint8(end++, 0x65);
  if (exponent < 0) text.setUint8(end++, 0x2d);
  const magnitude = Math.abs(exponent);
  if (magnitude >= 100) text.setUint8(end++, 0x30 + ((magnitude / 100) | 0));
  if (magnitude >= 10) text.setUint8(end++, 0x30 + (((magnitude / 10) | 0) % 10));
  text.setUint8(end++, 0x30 + (magnitude % 10));
  return end;
}

function countDigits(value: number): number {
  let count = 1;
  while (count < 9 && value >= powersOf10[count]!) count++;
  return count;
}

function write9Digits(text: DataView, at: number, digits: number): void {
  const upper = ((digits | 0) / 10000) | 0;
  const top = (upper / 10000) | 0;
  text.setUint8(at, 0x30 + top);
  text.setUint32(at + 1, fourDigits((upper - Math.imul(top, 10000)) | 0), true);
  text.setUint32(at + 5, fourDigits((digits - Math.imul(upper, 10000)) | 0), true);
}

/**
 * Returns four digits as characters, the first in the lowest byte. The halves, and then their tens and ones, are computed in parallel.
 */
function fourDigits(value: number): number {
  const upper = ((value | 0) / 100) | 0;
  const pairs = upper | ((value - Math.imul(upper, 100)) << 16);
  const tens = (Math.imul(pairs, 103) >> 10) & 0xf000f;
  return (tens | ((pairs - Math.imul(tens, 10)) << 8)) + 0x30303030;
}
