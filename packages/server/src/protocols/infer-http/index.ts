/**
 * Inferences over HTTP, shared by the protocols with the KServe body: reads it (JSON, binary, raw, chunked, compressed) under limits,
 * calls the engine, sends the response without copying large tensors, and releases memory when the bytes were sent.
 */
export { requestEncoding, responseEncoding } from "./compression.ts";
export { InferCallError } from "./call-request.ts";
export { errorEvent, ownedOutcome, replyEvents, type PrintedAnswer } from "./event-reply.ts";
export { InferCalls } from "./infer-call.ts";
export { InferEvents } from "./infer-events.ts";
export { StreamedAnswers } from "./streamed-answers.ts";
export { settleText, takeForText } from "./text-memory.ts";
