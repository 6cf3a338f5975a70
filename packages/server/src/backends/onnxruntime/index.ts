/**
 * Backend `onnxruntime`: ONNX models run through ONNX Runtime's C API in processes of their own, which a model may end without harm to
 * others, or in this process. Models with equal files and settings
 * share one session, whichever repositories and archives they come from; an instance is one concurrent run over it.
 */
export {
  createOnnxRuntimeBackend,
  onnxRuntimeBackendDefaults,
  type OnnxRuntimeBackendOptions,
} from "./onnxruntime-backend.ts";
export type { GpuLibrary, OnnxGpus } from "./gpus.ts";
export { providersOnGpu } from "./provider-options.ts";
export { quietLibrary } from "./start-runner.ts";
