/** ONNX model files as they are written: graphs of constants and operators. Reading them is ONNX Runtime's. */
export {
  encodeOnnx,
  onnxTypes,
  writeOnnxFile,
  type Constant,
  type OnnxAttribute,
  type OnnxGraph,
  type OnnxModel,
  type OnnxType,
  type Operator,
} from "./onnx-writer.ts";
