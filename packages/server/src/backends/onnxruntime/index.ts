/**
 * Backend `onnxruntime`: runs ONNX models through ONNX Runtime's C API in separate processes, so that a crash of a model does not end the
 * server. Models with equal files and settings share one session, whichever repositories and archives they come from; an instance is one
 * concurrent run of it.
 */
export { createOnnxRuntimeBackend, onnxRuntimeBackendDefaults } from "./onnxruntime-backend.ts";
export type { OnnxGpus } from "./gpus.ts";
