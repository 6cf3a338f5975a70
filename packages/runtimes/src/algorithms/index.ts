/**
 * The algorithms that SageMaker has containers for: linear learner, pipelines of Spark ML as MLeap bundles, and the languages of these and of
 * XGBoost (bytes of some content type in, an answer with a status out). All of it is pure but for the files of bundles, and takes time in
 * proportion to what it is given, or longer: it is for threads. Files are hostile.
 */
export { readLinearModel } from "./linear-learner/linear-model.ts";
export { answerLinear } from "./linear-learner/linear-payloads.ts";
export { readSparkModel } from "./mleap/spark-model.ts";
export { answerSpark } from "./mleap/spark-payloads.ts";
export {
  AlgorithmRefusal,
  refusalAnswer,
  type AlgorithmAnswer,
  type AlgorithmRequest,
} from "./payloads/algorithm-request.ts";
export { isPickle, readPickledBooster } from "./xgboost/pickled-booster.ts";
export type { TreePredictor } from "./xgboost/tree-predictor.ts";
export { answerXgboost, type XgboostServing } from "./xgboost/xgboost-payloads.ts";
