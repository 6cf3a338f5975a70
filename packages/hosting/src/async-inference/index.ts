/**
 * Asynchronous inference: requests are accepted, wait in the queue of their endpoint until one of its instances is
 * free, and their responses go to S3. An accepted request is a record until its response is stored and its topic
 * notified, so a crash of the platform loses none; a request may run twice.
 */
export { emptyTrace, type RunTrace } from "./data-log.ts";
export { invocationOf, type AsyncRequest, type AsyncTicket } from "./accepted-request.ts";
export { asyncLimits, type AsyncLimits } from "./async-limits.ts";
export {
  expiredFailure,
  lostCountMax,
  nextAsyncState,
  type AsyncEvent,
  type AsyncInvocation,
  type AsyncState,
} from "./async-invocation.ts";
export { runInvocation, type RunEnd } from "./async-run.ts";
export { EndpointQueue, queueKey } from "./endpoint-queue.ts";
export type { QueuedEntry } from "./invocation-queue.ts";
export { urlOf } from "./output-locations.ts";
export { resultMessage, type AsyncResult } from "./result-message.ts";
export type { ResultOutbox } from "./result-outbox.ts";
