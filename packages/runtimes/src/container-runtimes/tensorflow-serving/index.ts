/** SageMaker's TensorFlow Serving container: SavedModels with the REST API of TensorFlow Serving. */
export { tensorflowServingContainer } from "./serving-container.ts";
