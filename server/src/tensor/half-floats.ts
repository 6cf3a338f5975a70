const one = new DataView(new ArrayBuffer(4));

/** IEEE 754 binary16 bits to its value. */
export function halfToNumber(bits: number): number {
  const sign = bits & 0x8000 ? -1 : 1;
  const exponent = (bits >> 10) & 0x1f;
  const fraction = bits & 0x3ff;
  if (exponent === 0) return sign * fraction * 2 ** -24;
  if (exponent === 31) return fraction === 0 ? sign * Infinity : Number.NaN;
  return sign * (1024 + fraction) * 2 ** (exponent - 25);
}

/** The nearest binary16 (ties to even) as bits; too large becomes infinity. */
export function numberToHalf(value: number): number {
  const sign = value < 0 || Object.is(value, -0) ? 0x8000 : 0;
  const magnitude = Math.abs(value);
  if (Number.isNaN(value)) return 0x7e00;
  if (magnitude >= 65520) return sign | 0x7c00;
  const exponent = magnitude < 2 ** -14 ? -14 : Math.floor(Math.log2(magnitude));
  const unit = 2 ** (exponent - 10);
  const steps = roundHalfEven(magnitude / unit);
  // A carry out of the fraction lands in the exponent, which is where it belongs.
  return sign | (exponent === -14 && steps < 1024 ? steps : ((exponent + 15) << 10) + (steps - 1024));
}

function roundHalfEven(value: number): number {
  const floor = Math.floor(value);
  const rest = value - floor;
  return rest > 0.5 || (rest === 0.5 && floor % 2 === 1) ? floor + 1 : floor;
}

/** bfloat16 bits (the high half of a binary32) to its value. */
export function bfloat16ToNumber(bits: number): number {
  one.setUint32(0, bits << 16);
  return one.getFloat32(0);
}

/** The nearest bfloat16 (ties to even) as bits. */
export function numberToBfloat16(value: number): number {
  if (Number.isNaN(value)) return 0x7fc0;
  one.setFloat32(0, value);
  const bits = one.getUint32(0);
  return ((bits + 0x7fff + ((bits >>> 16) & 1)) >>> 16) & 0xffff;
}
