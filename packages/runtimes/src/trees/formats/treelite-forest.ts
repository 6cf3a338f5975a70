import { InferenceError } from "@galatea/base";
import type { Transform, Tree } from "../forest.ts";

/** Divides each leaf weight by the number of trees that add to the same output, so that outputs are averages. Changes the trees. */
export function averageTreelite(trees: readonly Tree[], outputCount: number): void {
  const counts = new Float64Array(outputCount);
  for (const { target } of trees) {
    if (target === "every") for (const output of counts.keys()) counts[output] = (counts[output] as number) + 1;
    else counts[target] = (counts[target] as number) + 1;
  }
  for (const { target, leafWeights } of trees) {
    for (const position of leafWeights.keys()) {
      const count = counts[target === "every" ? position % outputCount : target] as number;
      leafWeights[position] = (leafWeights[position] as number) / count;
    }
  }
}

export function treeliteTransform(
  name: string,
  { alpha, ratio }: { readonly alpha: number; readonly ratio: number },
): Transform {
  switch (name) {
    case "identity":
    case "identity_multiclass":
      return { kind: "identity" };
    case "sigmoid":
    case "multiclass_ova":
      return { kind: "sigmoid", alpha };
    case "softmax":
      return { kind: "softmax" };
    case "exponential":
      return { kind: "exponential" };
    case "logarithm_one_plus_exp":
      return { kind: "softplus" };
    case "hinge":
      return { kind: "hinge" };
    case "signed_square":
      return { kind: "signed-square" };
    case "exponential_standard_ratio":
      return { kind: "exponential-ratio", ratio };
    default:
      throw new InferenceError("UNSUPPORTED", `Post-processor named '${name}' not found`);
  }
}
