/**
 * Errors, clocks, loggers, task groups, body buffers and memory budgets for every module. This module does not depend
 * on models, AWS or HTTP.
 */
export { reserveCallMemory } from "./reserve-call-memory.ts";
export { TokenBucket, type TokenBucketLimits } from "./token-bucket.ts";
export { ByteBudget, ByteLease } from "./byte-budget.ts";
export {
  AwsError,
  InferenceError,
  assert,
  inferenceCodeText,
  inferenceCodes,
  isMemoryReason,
  unreachable,
  type InferenceCode,
  type InferenceErrorOptions,
  type InferenceReason,
} from "./errors.ts";
export { asDiskError, DiskError, diskFaultOf, describeDiskFault, makeDirectory } from "./disk-fault.ts";
export { delay, systemClock, type Clock } from "./clock.ts";
export { createLogger, silentLogger, type LogFields, type LogLevel, type Logger } from "./log.ts";
export { openDeadline, type Deadline } from "./concurrency/deadline.ts";
export { waitForDrain } from "./concurrency/wait-for-drain.ts";
export { CoalescedWriter } from "./concurrency/coalesced-writer.ts";
export { ChangeNotifier } from "./concurrency/change-notifier.ts";
export { KeyedLock } from "./concurrency/keyed-lock.ts";
export { LazyResource } from "./concurrency/lazy-resource.ts";
export { EventLoopQueue, type YieldOptions } from "./concurrency/event-loop-queue.ts";
export { rejectOnAbort } from "./concurrency/reject-on-abort.ts";
export { Semaphore } from "./concurrency/semaphore.ts";
export { TaskGroup } from "./concurrency/task-group.ts";
export { SerialQueue } from "./concurrency/serial-queue.ts";
export { RecyclingMap } from "./recycling-map.ts";
export { retryWrite, type RetryWriteOptions } from "./retry-write.ts";
export { readToBuffer } from "./read-to-buffer.ts";
export {
  readRecordIoHeader,
  recordIoFrame,
  recordIoHeaderBytes,
  recordIoMagic,
  type RecordIoHeader,
} from "./record-io.ts";
export { makeSharedDirectory, sharedDirectoryMode, sharedFileMode } from "./shared-directory.ts";
export { checksummedLine, parseChecksummedLine } from "./checksummed-line.ts";
