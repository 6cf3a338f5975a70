/**
 * The algorithms that SageMaker has containers for and that need no library: linear learner, and pipelines of Spark ML as MLeap bundles. Their
 * files are read, and requests answered (bytes of some content type in, an answer with a status out), in a thread: files are hostile and may
 * take its memory and its time, and then end it.
 */
export type { AlgorithmName, AlgorithmSource } from "./algorithm-models.ts";
export { AlgorithmThread, type HeldAlgorithm } from "./algorithm-thread.ts";
export type { AlgorithmAnswer, AlgorithmRequest } from "./payloads/algorithm-request.ts";
