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

export { openRunLane, type RunLane } from "./run-lane.ts";
export {
  frameByteLength,
  FrameWriter,
  MalformedRunFrame,
  readLaneResult,
  wordBytes,
  type LaneResult,
  type LaneCommand,
  type RunCommand,
  type RunResult,
  type RunValue,
} from "./run-wire.ts";

export { openDescriptorSocket } from "./descriptor-socket.ts";
