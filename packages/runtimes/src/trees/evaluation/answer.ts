import { unreachable } from "@galatea/base";
import type { Forest } from "../forest.ts";

/** What a model answers with, of its transformed scores. */
export type Answer =
  /** One number for each output of the forest. */
  | { readonly kind: "scores" }
  /** Of one probability two: of the negative class and of the positive. */
  | { readonly kind: "both-classes" }
  /** 1 where the score is above the threshold, else 0. */
  | { readonly kind: "above"; readonly threshold: number }
  /** The number of the output with the highest score. */
  | { readonly kind: "best-class" };

/** Numbers of each row's contributions: for each output one for each feature, and what is left. */
export function contributionColumns({
  outputCount,
  featureCount,
}: Pick<Forest, "outputCount" | "featureCount">): number {
  return outputCount * (featureCount + 1);
}

/** Numbers of each row's answer. */
export function answerColumns(forest: Pick<Forest, "outputCount">, { kind }: Answer): number {
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
