/**
 * SageMaker's built-in algorithms: linear learner, Spark ML pipelines as MLeap bundles, and the request formats of these and of XGBoost
 * (bytes of some content type in, a response with a status out). Pure except for reading bundles. Takes time at least linear in its
 * input, therefore it runs in threads. Model files are untrusted.
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
