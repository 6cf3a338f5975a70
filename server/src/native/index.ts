/** The C library and native libraries as TypeScript: the only folder that knows koffi. */
export { openSharedMemory, pageBytes, type SharedMemory } from "./memory.ts";
export {
  onnxStringType,
  openOnnxRuntime,
  plainSession,
  type OnnxInput,
  type OnnxOutput,
  type OnnxResult,
  type OnnxRun,
  type OnnxRuntime,
  type OnnxRuntimeOptions,
  type OnnxSession,
  type OnnxSessionOptions,
  type OnnxValueInfo,
} from "./onnxruntime.ts";
export {
  armLifeline,
  becomeSubreaper,
  findEnded,
  isChild,
  openPipe,
  openSocketPair,
  reapNow,
  sendDescriptors,
  receiveNow,
  sendNow,
  signalGroup,
  type DescriptorPair,
  type WaitResult,
} from "./process-control.ts";
export { SystemCallError } from "./system-error.ts";
