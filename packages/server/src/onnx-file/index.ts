/** ONNX model files as they are written: graphs of constants and operators. Reading them is ONNX Runtime's. */
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
export { writeOnnxPieces, type StreamedBytes } from "./pieces.ts";
