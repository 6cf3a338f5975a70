/** Containers of SageMaker's algorithms: an archive is what the algorithm's training has left, and nothing of it is code. */
export { algorithmContainer } from "./algorithm-container.ts";
export { sparkExecution, xgboostBodyBytes, xgboostExecution } from "./execution-parameters.ts";
