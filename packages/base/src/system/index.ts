/**
 * Linux system calls through koffi: shared memory, pipes and socket pairs, descriptors, signals, child processes,
 * processors. Every function throws SystemCallError with the call's errno.
 */
export { discardMemory } from "./discard-memory.ts";
export {
  setProcessAlarm,
  duplicateForExec,
  setCloseOnExec,
  makeNamedPipe,
  setParentDeathSignal,
  openSocketPair,
  sendNonBlocking,
  sendDescriptors,
  receiveDescriptor,
  receiveNonBlocking,
  openPipe,
  signalGroup,
  armLifeline,
  becomeSubreaper,
  findEndedChild,
  isChild,
  reapChild,
  pinThread,
  receiveBlocking,
  sendBlocking,
} from "./process-control.ts";
export { landlockVersion } from "./landlock-version.ts";
export { type MappedMemory, mapMemory } from "./mapped-memory.ts";
export { SystemCallError } from "./system-error.ts";
export { pageBytes, openSharedMemory, type SharedMemory } from "./memory.ts";
export { openSealableMemory, type SealableMemory } from "./sealed-memory.ts";
export { processorYield, usableProcessors } from "./processors.ts";
export { koffi } from "./koffi.ts";
export { type ThreadPlacement, divideProcessors } from "./placement.ts";
export { trimHeap } from "./trim-heap.ts";
