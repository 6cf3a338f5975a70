/**
 * SageMaker's built-in algorithms: models of linear learner, Spark ML pipelines as MLeap bundles, and the request and response formats of
 * both and of XGBoost. Functions are pure, except that `readSparkModel` reads the files of a bundle. They block for at least a time linear
 * in their input, so they are called in worker threads. Model files are untrusted.
 */
export { readLinearModel } from "./linear-learner/linear-model.ts";
export { predictLinear } from "./linear-learner/linear-payloads.ts";
export { readSparkModel } from "./mleap/spark-model.ts";
export { predictSpark } from "./mleap/spark-payloads.ts";
export {
  AlgorithmRequestError,
  rejectionResponse,
  type AlgorithmResponse,
  type AlgorithmRequest,
} from "./payloads/algorithm-request.ts";
export { isPickle, readPickledBooster } from "./xgboost/pickled-booster.ts";
export type { TreePredictor } from "./xgboost/tree-predictor.ts";
export { predictXgboost, type XgboostServing } from "./xgboost/xgboost-payloads.ts";
