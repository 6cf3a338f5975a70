/**
 * The shape of an input of which `count` elements came in a row: the configured dimensions, where the last variable one (the batch's too)
 * takes what is left and every other is 1. Null where the elements do not come out even.
 */
export function shapeOfElements(configured: readonly number[], count: number): readonly number[] | null {
  let fixed = 1;
  for (const dimension of configured) if (dimension >= 0) fixed *= dimension;
  const variable = configured.lastIndexOf(-1);
  if (variable === -1) return count === fixed ? configured : null;
  if (fixed === 0 || count % fixed !== 0) return null;
  return configured.map((dimension, index) => (dimension >= 0 ? dimension : index === variable ? count / fixed : 1));
}
