/** Converts encoder checkpoints to ONNX models. Never executes code that a checkpoint contains. */
export { convertEncoder, onnxFileBytesMax, type ConvertedEncoder } from "./convert-encoder.ts";
export { ConversionError } from "./conversion-error.ts";
export type { GraphOptions } from "./encoder-graph.ts";
export { addToRepository } from "./repository-layout.ts";
