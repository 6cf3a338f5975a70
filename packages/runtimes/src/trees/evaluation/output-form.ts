import { unreachable } from "@galatea/base";
import type { Forest } from "../forest.ts";

/** The way in which a model's output is computed from its transformed scores. */
export type OutputForm =
  /** One number for each output of the forest. */
  | { readonly kind: "scores" }
  /** Two numbers: the probabilities of the negative and of the positive class. */
  | { readonly kind: "both-classes" }
  /** 1 if the score is above the threshold, else 0. */
  | { readonly kind: "above"; readonly threshold: number }
  /** The index of the output with the highest score. */
  | { readonly kind: "best-class" };

/** Returns the number of contributions of a row: for each output, one for each feature, and the bias. */
export function contributionColumns({
  outputCount,
  featureCount,
}: Pick<Forest, "outputCount" | "featureCount">): number {
  return outputCount * (featureCount + 1);
}

/** Returns the number of predictions of a row. */
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
