/** Backends of SageMaker's algorithms: models that are given the body of a request, and its types, and answer with a body, a type and a status. */
export { createAlgorithmBackend } from "./algorithm-backend.ts";
