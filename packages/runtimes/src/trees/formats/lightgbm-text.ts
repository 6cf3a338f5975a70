import { InferenceError } from "@galatea/base";
import { invalidForest, featuresMax, type Forest, NodeCount, outputsMax, type Transform, treesMax } from "../forest.ts";
import { readLightgbmTree } from "./lightgbm-tree.ts";
import { TextLines } from "./text-lines.ts";

/** Reads the text format of LightGBM models. Throws InferenceError for an invalid file. */
export function readLightgbmText(bytes: Uint8Array, { explains = false }: { readonly explains?: boolean }): Forest {
  const lines = new TextLines(bytes);
  const head = readHead(lines);
  const trees = [];
  const nodes = new NodeCount();
  while (lines.name === "Tree") {
    if (trees.length >= treesMax) throw new InferenceError("UNSUPPORTED", `the model has more than ${treesMax} trees`);
    trees.push(
      readLightgbmTree(lines, { index: trees.length, target: trees.length % head.outputCount, nodes, explains }),
    );
  }
  if (lines.name !== "end of trees")
    throw invalidForest("the file", "ends before its trees do: it has no line 'end of trees'");
  if (trees.length % head.outputCount !== 0)
    throw invalidForest("the file", `has ${trees.length} trees for ${head.outputCount} classes`);
  if (head.averages) {
    const share = head.outputCount / Math.max(1, trees.length);
    for (const { leafWeights, linear } of trees)
      for (const numbers of [leafWeights, ...(linear === null ? [] : [linear.constants, linear.coefficients])])
        for (const position of numbers.keys()) numbers[position] = (numbers[position] as number) * share;
  }
  const { featureCount, outputCount, transform } = head;
  return {
    precision: "float64",
    featureCount,
    outputCount,
    trees,
    baseScores: Array.from({ length: outputCount }, () => 0),
    transform,
  };
}

interface Head {
  readonly featureCount: number;
  readonly outputCount: number;
  readonly averages: boolean;
  readonly transform: Transform;
}

/** Reads everything before the first tree. */
function readHead(lines: TextLines): Head {
  if (!lines.next() || !lines.is("tree"))
    throw invalidForest("the file", "is not a LightGBM model: its first line is not 'tree'");
  let objective = "custom";
  let averages = false;
  let featureCount = 0;
  let outputCount = 1;
  while (lines.next() && lines.name !== "Tree" && lines.name !== "end of trees") {
    if (lines.name === "objective") objective = lines.text();
    else if (lines.name === "average_output") averages = true;
    else if (lines.name === "max_feature_idx") featureCount = lines.integer(0, featuresMax - 1) + 1;
    else if (lines.name === "num_tree_per_iteration") outputCount = lines.integer(1, outputsMax);
  }
  if (featureCount === 0) throw invalidForest("the file", "has no max_feature_idx");
  return { featureCount, outputCount, averages, transform: transformOf(objective) };
}

/** Returns the transform of an objective: a name with parameters, such as `binary sigmoid:1`. */
function transformOf(objective: string): Transform {
  const [name = "", ...parameters] = objective.split(" ");
  const parameter = (key: string): number => {
    const text = parameters.find((each) => each.startsWith(`${key}:`))?.slice(key.length + 1) ?? "";
    const value = text === "" ? Number.NaN : Number(text);
    if (!(value > 0 && Number.isFinite(value))) throw invalidForest(`objective '${name}'`, `has no ${key}`);
    return value;
  };
  switch (name) {
    case "binary":
    case "multiclassova":
      return { kind: "sigmoid", alpha: parameter("sigmoid") };
    case "cross_entropy":
    case "xentropy":
      return { kind: "sigmoid", alpha: 1 };
    case "cross_entropy_lambda":
    case "xentlambda":
      return { kind: "softplus" };
    case "multiclass":
      return { kind: "softmax" };
    case "poisson":
    case "gamma":
    case "tweedie":
      return { kind: "exponential" };
    case "regression":
    case "regression_l1":
    case "huber":
    case "fair":
    case "quantile":
    case "mape":
      return { kind: parameters.includes("sqrt") ? "signed-square" : "identity" };
    case "lambdarank":
    case "rank_xendcg":
    case "custom":
    case "none":
      return { kind: "identity" };
    default:
      throw new InferenceError("UNSUPPORTED", `Unrecognized LightGBM objective: ${name}`);
  }
}
