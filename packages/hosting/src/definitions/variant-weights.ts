/** The largest number that SageMaker's VariantWeight, a float of 32 bits, can be. */
const weightMax = 3.4028234663852886e38;

/** What is wrong with a weight that its range does not say: JSON can name what is no number, and what is beyond all of them. Null where it may be. */
export function weightRefusal(variantName: string, weight: number): string | null {
  if (weight >= 0 && weight <= weightMax) return null;
  return `The weight of variant "${variantName}" has to be a finite number from 0 to ${weightMax}, not ${weight}.`;
}
