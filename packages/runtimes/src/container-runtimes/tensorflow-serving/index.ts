/** SageMaker's TensorFlow Serving container: SavedModels behind its REST API. */
export { tensorflowServingContainer } from "./serving-container.ts";
