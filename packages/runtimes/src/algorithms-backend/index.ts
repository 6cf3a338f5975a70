/**
 * Backends of SageMaker's algorithms, whose models receive the body of a request with its types, and return a body, a type and a status.
 */
export { createAlgorithmBackend } from "./algorithm-backend.ts";
