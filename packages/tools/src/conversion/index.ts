/** Conversion of trained models to served ones: encoders to ONNX. No code of a source is executed. */
export { convertEncoder, onnxFileBytesMax, type ConvertedEncoder } from "./convert-encoder.ts";
export { ConversionError } from "./conversion-error.ts";
export type { GraphOptions } from "./encoder-graph.ts";
export { addToRepository } from "./repository-layout.ts";
