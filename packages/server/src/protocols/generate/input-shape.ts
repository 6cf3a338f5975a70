/**
 * Returns the shape of an input with `count` elements in a flat list. The last variable dimension (which may be the batch dimension) is
 * `count` divided by the product of the fixed dimensions; every other variable dimension is 1. Returns null if the count is not divisible.
 */
export function inferInputShape(configured: readonly number[], count: number): readonly number[] | null {
  let fixed = 1;
  for (const dimension of configured) if (dimension >= 0) fixed *= dimension;
  const variable = configured.lastIndexOf(-1);
  if (variable === -1) return count === fixed ? configured : null;
  if (fixed === 0 || count % fixed !== 0) return null;
  return configured.map((dimension, index) => (dimension >= 0 ? dimension : index === variable ? count / fixed : 1));
}
