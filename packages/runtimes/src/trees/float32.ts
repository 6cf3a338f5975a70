/** Conversions from float64 thresholds to float32 thresholds, such that comparisons of every float32 have the same result. */
const float = new Float32Array(1);
const bits = new Int32Array(float.buffer);

/** Returns the next greater float32; `value` must be a float32. Infinity and NaN are unchanged. */
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

/** Returns the largest float32 that is not above `value`. */
export function floorToFloat32(value: number): number {
  const rounded = Math.fround(value);
  return rounded > value ? nextDown(rounded) : rounded;
}

/** Returns the smallest float32 that is not below `value`. */
export function ceilToFloat32(value: number): number {
  const rounded = Math.fround(value);
  return rounded < value ? nextUp(rounded) : rounded;
}
