import { unreachable } from "@galatea/base";
import type { Forest } from "../forest.ts";

/** The form of a model's outputs, from its transformed scores. */
export type OutputForm =
  /** One number for each output of the forest. */
  | { readonly kind: "scores" }
  /** The probabilities of the negative and of the positive class, from one probability. */
  | { readonly kind: "both-classes" }
  /** 1 if the score is above the threshold, else 0. */
  | { readonly kind: "above"; readonly threshold: number }
  /** The index of the output with the highest score. */
  | { readonly kind: "best-class" };

/** Returns the number of each row's contributions: for each output one for each feature, and the remainder. */
export function contributionColumns({
  outputCount,
  featureCount,
}: Pick<Forest, "outputCount" | "featureCount">): number {
  return outputCount * (featureCount + 1);
}

/** Returns the number of columns of each row's result. */
export function predictionColumns(forest: Pick<Forest, "outputCount">, { kind }: OutputForm): number {
  switch (kind) {
    case "scores":
      return forest.outputCount;
    case "both-classes":
      return 2;
    case "above":
    case "best-class":
      return 1;
    default:
      return unreachable(kind);
  }
}
