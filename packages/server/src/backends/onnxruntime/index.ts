/**
 * Backend `onnxruntime`: ONNX models run through ONNX Runtime's C API in processes of their own, which a model may end without harm to
 * others. Models with equal files and settings share one session, whichever repositories and archives they come from; an instance is one
 * concurrent run over it.
 */
export { createOnnxRuntimeBackend, onnxRuntimeBackendDefaults } from "./onnxruntime-backend.ts";
export type { OnnxGpus } from "./gpus.ts";
