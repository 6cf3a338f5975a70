/**
 * Asynchronous inference: a request waits in the queue of its endpoint until an instance is free, and its response is
 * written to S3. The record of a request is deleted after its response is stored and its SNS notification is queued, so
 * that a crash of the platform loses no request. A request may run twice.
 */
export { newRunTrace, type AsyncRunTrace } from "./data-log.ts";
export { newAsyncInvocation, type AsyncRequest, type AsyncReceipt } from "./accepted-request.ts";
export { asyncLimits, type AsyncLimits } from "./async-limits.ts";
export {
  expiredFailure,
  containerLossesMax,
  nextAsyncState,
  type AsyncEvent,
  type AsyncInvocation,
  type AsyncState,
} from "./async-invocation.ts";
export { isTemporaryStoreError, runAsyncInvocation, type AsyncRunOutcome } from "./async-run.ts";
export { EndpointQueue, queueKey } from "./endpoint-queue.ts";
export type { QueuedInvocation } from "./invocation-queue.ts";
export { s3Url } from "./output-locations.ts";
export { resultMessage, type AsyncResult } from "./result-message.ts";
export type { ResultOutbox } from "./result-outbox.ts";
