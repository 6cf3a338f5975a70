/** Models from the files that training leaves to those that are served: encoders to ONNX. Nothing of a source is executed. */
export { convertEncoder, onnxFileBytesMax, type ConvertedEncoder } from "./convert-encoder.ts";
export { ConversionError } from "./conversion-error.ts";
export type { GraphOptions } from "./encoder-graph.ts";
export { addToRepository } from "./repository-layout.ts";
