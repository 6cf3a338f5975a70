/**
 * expf and logf of the C library (glibc since 2.27, musl since 1.2), with which XGBoost computes predictions. Before rounding, they differ
 * from the true value by hundredths to tenths of a unit in the last place. Rounded results of Math.exp differ from expf for one number in
 * 1,500, and those of Math.log from logf for one in 170; predictions would then differ from the library's.
 */
const float = new Float32Array(1);
const bits = new Int32Array(float.buffer);

const powerCount = 32;
/** Values of 2^(i/32). */
const powers = Float64Array.from({ length: powerCount }, (_, index) => 2 ** (index / powerCount));
/** Coefficients of 2^(r/32) for r from -0.5 to 0.5. */
const powerTerms = [0.05550361559341535, 0.2402284522445722, 0.6931471806916203].map(
  (term, index) => term / powerCount ** (3 - index),
) as [number, number, number];
const stepsPerUnit = Math.LOG2E * powerCount;

/** Returns e^x for a float32, as a float32. */
export function expFloat(x: number): number {
  // Outside of this range, results are near 0, infinite or NaN, where the rounded Math.exp equals expf.
  if (!(x > -103.9 && x < 88.7)) return Math.fround(Math.exp(x));
  const steps = stepsPerUnit * x;
  const total = roundToEven(steps);
  const rest = steps - total;
  const index = ((total % powerCount) + powerCount) % powerCount;
  const scale = (powers[index] as number) * 2 ** ((total - index) / powerCount);
  const [cubic, square, linear] = powerTerms;
  return Math.fround(((cubic * rest + square) * (rest * rest) + (linear * rest + 1)) * scale);
}

function roundToEven(value: number): number {
  // Doubles of this magnitude (1.5 * 2^52) have no fractional digits, so the addition rounds to an integer.
  return value + 6755399441055744 - 6755399441055744;
}

/** For each of sixteen intervals from 0.7 to 1.4: approximately the inverse of its middle, and in `logarithms` its logarithm. */
const inverses = [
  1.398907162146528, 1.3403141896637998, 1.286432210124115, 1.2367150214269895, 1.1906977166711752, 1.1479821020556429,
  1.1082251448272158, 1.0711297413057381, 1.036437278977283, 1, 0.9492859795739057, 0.8951049428609004,
  0.8476821620351103, 0.8050314851692001, 0.7664671008843108, 0.731428603316328,
];
const logarithms = [
  -0.33569133332882284, -0.2929040563774074, -0.2518726580937369, -0.21245868807117255, -0.17453945183745634,
  -0.1380057072319758, -0.10275976698545139, -0.06871392447020525, -0.0357891387398228, 0, 0.05204517742929496,
  0.11081431298787942, 0.1652495223695143, 0.21687389031699977, 0.2659635028121397, 0.3127556664073557,
];
const logarithmTerms = [-0.25089342214237154, 0.333456765744066, -0.4999997485802103] as const;

/** Returns ln(x) for a float32, as a float32. */
export function logFloat(x: number): number {
  if (!(x >= 2 ** -126 && x < Infinity) || x === 1) return Math.fround(Math.log(x));
  float[0] = x;
  const offset = ((bits[0] as number) - 0x3f330000) | 0;
  const index = (offset >> 19) & 15;
  const exponent = offset >> 23;
  bits[0] = (bits[0] as number) - (exponent << 23);
  const rest = float[0] * (inverses[index] as number) - 1;
  const total = (logarithms[index] as number) + exponent * Math.LN2;
  const [quartic, cubic, square] = logarithmTerms;
  return Math.fround((quartic * (rest * rest) + (cubic * rest + square)) * (rest * rest) + (total + rest));
}
