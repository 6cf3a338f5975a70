/** Containers of SageMaker's algorithms: an archive is the result of the algorithm's training, without code. */
export { algorithmContainer } from "./algorithm-container.ts";
export { sparkExecution, xgboostBodyBytes, xgboostExecution } from "./execution-parameters.ts";
