/**
 * Inferences over HTTP, for all protocols with the KServe body. Reads the body (JSON, binary, raw, chunked, compressed) within limits,
 * calls the engine, and sends the response without copying large tensors. Memory is released when the bytes were sent.
 */
export { requestEncoding, responseEncoding } from "./compression.ts";
export { InferCallError } from "./call-request.ts";
export { errorEvent, disposableOutcome, replyEvents, type PrintedResponse } from "./event-reply.ts";
export { InferCalls } from "./infer-call.ts";
export { InferEvents } from "./infer-events.ts";
export { ResponseIterator } from "./response-iterator.ts";
export { setTextMemory, reserveTextMemory } from "./text-memory.ts";
