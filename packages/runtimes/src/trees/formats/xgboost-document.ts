import { InferenceError } from "@galatea/base";
import { invalidForest, featuresMax, NodeCount, outputsMax, type Tree, treesMax } from "../forest.ts";
import { Members, type TakenElements, type Value } from "./document.ts";
import { buildXgboostTree, readXgboostTree, type SerializedTree, xgboostTreeExtras } from "./xgboost-tree.ts";
import { linearBooster, noTrees, type XgboostModel } from "./xgboost-model.ts";
import { xgboostObjective } from "./xgboost-objectives.ts";

export interface XgboostOptions {
  /** True to ignore fields that no known version of XGBoost writes. */
  readonly allowUnknownField: boolean;
  /** True to read covers. */
  readonly explains?: boolean;
}

/** Known fields of the objects of a model, as XGBoost 1.0 to 3.2 writes them. */
const knownFields = {
  model: ["version", "learner", "Config", "Model"],
  learner: ["learner_model_param", "gradient_booster", "objective", "attributes", "feature_names", "feature_types"],
  parameters: ["base_score", "num_class", "num_target", "num_feature", "boost_from_average"],
  booster: ["name", "model", "gbtree", "weight_drop"],
  trees: ["trees", "tree_info", "gbtree_model_param", "iteration_indptr", "cats"],
  linear: ["weights", "boosted_rounds"],
} as const;

/** Reads a model that XGBoost saved as JSON or UBJSON. Trees are converted one by one while `read` runs. */
export function readXgboostDocument(read: (taking: TakenElements) => Value, options: XgboostOptions): XgboostModel {
  let model = new Members(read(takenTrees(options)), "");
  checkFields(model, knownFields.model, options);
  // A checkpoint has the member `Model`, in addition to a configuration.
  if (model.has("Model")) model = model.object("Model");
  const learner = model.object("learner");
  checkFields(learner, knownFields.learner, options);
  const parameters = learner.object("learner_model_param");
  checkFields(parameters, knownFields.parameters, options);
  const featureCount = parameters.integer("num_feature");
  const classCount = Math.max(1, parameters.integer("num_class", 0));
  const targetCount = Math.max(1, parameters.integer("num_target", 1));
  if (featureCount < 1 || featureCount > featuresMax)
    throw invalidForest(parameters.path, `has ${featureCount} features`);
  if (classCount > 1 && targetCount > 1)
    throw invalidForest(parameters.path, "has several classes and several targets");
  const outputCount = Math.max(classCount, targetCount);
  if (outputCount > outputsMax)
    throw new InferenceError("UNSUPPORTED", `the model has more than ${outputsMax} outputs`);
  const objective = xgboostObjective(learner.object("objective").text("name"));
  const common = {
    precision: "float32" as const,
    featureCount,
    outputCount,
    baseScores: readBaseScores(parameters, outputCount).map((score) => objective.marginOf(score)),
    transform: objective.transform,
    objective: objective.name,
  };
  const booster = learner.object("gradient_booster");
  checkFields(booster, knownFields.booster, options);
  if (booster.text("name") !== "gblinear")
    return { kind: "trees", forest: { ...common, trees: readTrees(booster, { outputCount, options }) } };
  const written = booster.object("model");
  checkFields(written, knownFields.linear, options);
  return linearBooster({ ...common, weights: Float32Array.from(written.numbers("weights")) }, written.path);
}

function takenTrees(options: XgboostOptions): TakenElements {
  const nodes = new NodeCount();
  return {
    list: "trees",
    passedOver: new Set([...xgboostTreeExtras].filter((name) => name !== "sum_hessian" || options.explains !== true)),
    take: (element, index): SerializedTree => {
      if (index >= treesMax) throw new InferenceError("UNSUPPORTED", `the model has more than ${treesMax} trees`);
      const checkNames = (members: Members, known: readonly string[]) => checkFields(members, known, options);
      const explains = options.explains === true;
      return readXgboostTree(new Members(element, `trees[${index}]`), { nodes, checkNames, explains });
    },
  };
}

/** Reads base scores: "0.5", "5E-1", "[5E-1]", or "[1E0,2E0]" if each output has its own. */
function readBaseScores(parameters: Members, outputCount: number): readonly number[] {
  const value = parameters.value("base_score");
  const texts =
    typeof value === "string"
      ? value.replace(/^\[(.*)\]$/, "$1").split(",")
      : [typeof value === "number" ? String(value) : ""];
  const scores = texts.map((text) => (text.trim() === "" ? Number.NaN : Math.fround(Number(text))));
  if (scores.some((score) => !Number.isFinite(score)) || (scores.length !== 1 && scores.length !== outputCount)) {
    throw invalidForest(`${parameters.path}.base_score`, `is not a number, or one for each of ${outputCount} outputs`);
  }
  return Array.from({ length: outputCount }, (_, output) => scores[scores.length === 1 ? 0 : output] as number);
}

interface BoosterOptions {
  readonly outputCount: number;
  readonly options: XgboostOptions;
}

function readTrees(booster: Members, { outputCount, options }: BoosterOptions): readonly Tree[] {
  const name = booster.text("name");
  if (name !== "gbtree" && name !== "dart") throw noTrees(name);
  const model = (name === "dart" ? booster.object("gbtree") : booster).object("model");
  checkFields(model, knownFields.trees, options);
  const written = model.taken("trees") as readonly SerializedTree[];
  const targets = model.numbers("tree_info");
  const weights = name === "dart" ? booster.numbers("weight_drop") : new Float64Array(written.length).fill(1);
  if (targets.length !== written.length || weights.length !== written.length) {
    throw invalidForest(
      model.path,
      `has ${written.length} trees, ${targets.length} in tree_info, ${weights.length} weights`,
    );
  }
  return written.map((tree, index) =>
    buildXgboostTree(tree, {
      outputCount,
      target: targets[index] as number,
      weight: weights[index] as number,
    }),
  );
}

function checkFields(members: Members, known: readonly string[], { allowUnknownField }: XgboostOptions): void {
  if (allowUnknownField) return;
  for (const name of members.names()) {
    if (known.includes(name)) continue;
    const where = members.path === "" ? "" : ` in ${members.path}`;
    throw new InferenceError(
      "UNSUPPORTED",
      `unknown field '${name}'${where}: set the parameter xgboost_allow_unknown_field to ignore such fields`,
    );
  }
}
