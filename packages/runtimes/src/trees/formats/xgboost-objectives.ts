import { InferenceError } from "@galatea/base";
import { logFloat } from "../evaluation/c-library.ts";
import type { Transform } from "../forest.ts";

/** An XGBoost objective: the transform from margins to predictions, and the conversion of the file's base score to a margin. */
interface Objective {
  readonly transform: Transform;
  readonly marginOf: (baseScore: number) => number;
}

const plain: Objective = { transform: { kind: "identity" }, marginOf: (score) => score };
const logit = (score: number): number => -logFloat(Math.fround(Math.fround(1 / score) - 1));
const logistic: Objective = { transform: { kind: "sigmoid", alpha: 1 }, marginOf: logit };
const exponential: Objective = { transform: { kind: "exponential" }, marginOf: logFloat };
const softmax: Objective = { transform: { kind: "softmax" }, marginOf: (score) => score };

const objectives: Readonly<Record<string, Objective>> = {
  "reg:squarederror": plain,
  "reg:linear": plain,
  "reg:squaredlogerror": plain,
  "reg:pseudohubererror": plain,
  "reg:absoluteerror": plain,
  "reg:quantileerror": plain,
  "reg:expectileerror": plain,
  "reg:logistic": logistic,
  "binary:logistic": logistic,
  "binary:logitraw": plain,
  "binary:hinge": { ...plain, transform: { kind: "hinge" } },
  "multi:softmax": softmax,
  "multi:softprob": softmax,
  "count:poisson": exponential,
  "reg:gamma": exponential,
  "reg:tweedie": exponential,
  "survival:cox": exponential,
  // XGBoost computes this exponential in float64.
  "survival:aft": { ...exponential, transform: { kind: "exponential", precision: "float64" } },
  "rank:pairwise": plain,
  "rank:ndcg": plain,
  "rank:map": plain,
};

export function xgboostObjective(name: string): Objective & { readonly name: string } {
  const objective = Object.hasOwn(objectives, name) ? objectives[name] : undefined;
  if (objective === undefined) throw new InferenceError("UNSUPPORTED", `Unrecognized XGBoost objective: ${name}`);
  return { ...objective, name };
}
