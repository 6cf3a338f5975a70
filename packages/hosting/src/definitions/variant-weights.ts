/** Maximum of SageMaker's VariantWeight, which is a 32-bit float. */
const weightMax = 3.4028234663852886e38;

/**
 * Returns the error text for a variant weight that is not a finite number in the allowed range; null if it is valid.
 * JSON numbers can be too large for a double and become infinite.
 */
export function variantWeightError(variantName: string, weight: number): string | null {
  if (weight >= 0 && weight <= weightMax) return null;
  return `The weight of variant "${variantName}" has to be a finite number from 0 to ${weightMax}, not ${weight}.`;
}
