/**
 * Backend `onnxruntime`: ONNX models run in this process through ONNX Runtime's C API. Models with equal files and settings
 * share one session, whichever repositories and archives they come from; an instance is one concurrent run over it.
 */
export { createOnnxRuntimeBackend, type OnnxRuntimeBackendOptions } from "./onnxruntime-backend.ts";
