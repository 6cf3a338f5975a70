/** The maximum of SageMaker's VariantWeight, a 32-bit float. */
const weightMax = 3.4028234663852886e38;

/**
 * Returns the error in a weight that its range does not express (JSON can contain values that become NaN or infinite);
 * null if it is valid.
 */
export function weightRefusal(variantName: string, weight: number): string | null {
  if (weight >= 0 && weight <= weightMax) return null;
  return `The weight of variant "${variantName}" has to be a finite number from 0 to ${weightMax}, not ${weight}.`;
}
