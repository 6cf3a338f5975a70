/** Bindings to native libraries through koffi: ONNX Runtime and NVML. */

export {
  openOnnxRuntime,
  plainSession,
  type OnnxRuntime,
  type OnnxRuntimeOptions,
  type OnnxSession,
  type OnnxSessionOptions,
} from "./onnxruntime.ts";
export { onnxRuntimeLibrary } from "./onnxruntime-library.ts";
export type { ExecutionProvider } from "./execution-providers.ts";
export { onnxStringType, type OnnxValueInfo } from "./onnxruntime-values.ts";
export { Nvml, NvmlError, type GpuReading } from "./nvml.ts";
export { openNvmlCalls, type NvmlCalls } from "./nvml-calls.ts";

export { openRunThread, type RunThread } from "./run-thread.ts";
export {
  frameByteLength,
  FrameWriter,
  MalformedRunFrame,
  readRunThreadResult,
  wordBytes,
  type RunThreadResult,
  type RunThreadCommand,
  type RunCommand,
  type RunResult,
  type RunValue,
} from "./run-wire.ts";

export { openDescriptorSocket } from "./descriptor-socket.ts";
