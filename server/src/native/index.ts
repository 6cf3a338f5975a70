/** The C library and native libraries as TypeScript: the only folder that knows koffi. */
export { openSharedMemory, pageBytes, type SharedMemory } from "./memory.ts";
export { discardMemory } from "./discard-memory.ts";
export { openSealableMemory, type SealableMemory } from "./sealed-memory.ts";
export { mapMemory, type MappedMemory } from "./mapped-memory.ts";
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
export { landlockVersion } from "./landlock-version.ts";
export { processorYield } from "./processors.ts";
export { openRunLane, type RunLane } from "./run-lane.ts";
export {
  frameBytesOf,
  FrameWriter,
  MalformedRunFrame,
  readAnswer,
  wordBytes,
  type LaneAnswer,
  type LaneOrder,
  type RunOrder,
  type RunResult,
  type RunValue,
} from "./run-wire.ts";
export {
  armLifeline,
  becomeSubreaper,
  findEnded,
  isChild,
  openPipe,
  openSocketPair,
  reapNow,
  receiveDescriptor,
  sendDescriptors,
  receiveNow,
  sendNow,
  signalAtParentsEnd,
  signalGroup,
  type DescriptorPair,
  type WaitResult,
} from "./process-control.ts";
export { openDescriptorSocket } from "./descriptor-socket.ts";
export { SystemCallError } from "./system-error.ts";
