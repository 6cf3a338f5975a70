/**
 * Comparisons with a threshold of double precision, said with one of single precision so that every float32 is still decided the same
 * way.
 */
const float = new Float32Array(1);
const bits = new Int32Array(float.buffer);

/** The next float32 above `value`, itself a float32; infinity and NaN stay. */
export function nextUp(value: number): number {
  if (Number.isNaN(value) || value === Infinity) return value;
  if (value === 0) return 2 ** -149;
  float[0] = value;
  bits[0] = (bits[0] as number) + (value > 0 ? 1 : -1);
  return float[0];
}

function nextDown(value: number): number {
  return -nextUp(-value);
}

/** The largest float32 that is not above `value`. */
export function floorToFloat32(value: number): number {
  const rounded = Math.fround(value);
  return rounded > value ? nextDown(rounded) : rounded;
}

/** The smallest float32 that is not below `value`. */
export function ceilToFloat32(value: number): number {
  const rounded = Math.fround(value);
  return rounded < value ? nextUp(rounded) : rounded;
}
