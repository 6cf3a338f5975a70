/**
 * Asynchronous inference: requests that are accepted, wait in the queue of their endpoint until one of its instances is free, and whose
 * answers go to S3. What was accepted is a record until its answer is stored and its topic has been told, so nothing of it is lost by a
 * platform that ends; it may be run twice.
 */
export { emptyTrace, type RunTrace } from "./data-log.ts";
export { invocationOf, type AsyncRequest, type AsyncTicket } from "./accepted-request.ts";
export { asyncLimits, type AsyncLimits } from "./async-limits.ts";
export {
  expiredFailure,
  lostCountMax,
  moveAsync,
  type AsyncEvent,
  type AsyncInvocation,
  type AsyncLife,
} from "./async-invocation.ts";
export { runInvocation, type RunEnd } from "./async-run.ts";
export { EndpointQueue, queueKey } from "./endpoint-queue.ts";
export type { QueuedEntry } from "./invocation-queue.ts";
export { urlOf } from "./output-places.ts";
export { resultMessage, type AsyncResult } from "./result-message.ts";
export type { ResultOutbox } from "./result-outbox.ts";
