/**
 * The backend `onnxruntime`: runs ONNX models through ONNX Runtime's C API in separate processes, so that a crash of a model does not end
 * the server. Models with equal files and settings share one session, even if they are in different repositories or archives. An instance
 * is one concurrent run of a session.
 */
export { createOnnxRuntimeBackend, onnxRuntimeBackendDefaults } from "./onnxruntime-backend.ts";
export type { OnnxGpus } from "./gpus.ts";
