/** TensorFlow Serving in a container of SageMaker: SavedModels behind its REST contract. */
export { tensorflowServingContainer } from "./serving-container.ts";
