/** Writes ONNX model files: graphs of constants and operators, as ONNX Runtime reads them. */
export { splitModel } from "./external-data.ts";
export {
  encodeOnnx,
  onnxByteLength,
  onnxTypes,
  writeOnnxFile,
  type Constant,
  type GraphTensor,
  type OnnxAttribute,
  type OnnxGraph,
  type OnnxModel,
  type OnnxType,
  type Operator,
} from "./onnx-writer.ts";
export { writeOnnxChunks, type StreamedBytes } from "./chunks.ts";
