/**
 * One inference over HTTP, shared by the protocols that carry the KServe body: reads it (JSON, binary, raw, chunked, compressed)
 * under limits, asks the engine, sends the answer without copying large tensors, releases memory when the bytes have left.
 */
export { requestEncoding, responseEncoding } from "./compression.ts";
export { InferCallError } from "./call-request.ts";
export { errorEvent, ownedOutcome, replyEvents, type PrintedAnswer } from "./event-reply.ts";
export { InferCalls } from "./infer-call.ts";
export { InferEvents } from "./infer-events.ts";
export { StreamedAnswers } from "./streamed-answers.ts";
export { settleText, takeForText } from "./text-memory.ts";
