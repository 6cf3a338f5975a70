/** Containers of SageMaker's built-in algorithms. An archive has the trained model, and no code. */
export { algorithmContainer } from "./algorithm-container.ts";
export { sparkExecution, xgboostBodyBytes, xgboostExecution } from "./execution-parameters.ts";
