/**
 * An HTTP/1.1 listener on a port or a Unix socket, with limits on everything. Exchanges have a signal that aborts when the client is
 * gone, bodies are read under limits, errors have the protocol's format. Knows no route and no model.
 */
export {
  admit,
  admitting,
  BodyError,
  declaredLength,
  discardChunk,
  discardChunks,
  gatherBody,
  GatheredBody,
  readBody,
  readWholeBody,
} from "./body.ts";
export { exchangeBytes, type Exchange } from "./exchange.ts";
export { defaultHttpLimits, type HttpLimits } from "./limits.ts";
export { openHttpListener, type HttpListenerOptions, type ListenAddress } from "./listener.ts";
export {
  errorBody,
  reply,
  replyError,
  replyFailure,
  replyJson,
  replyChunks,
  statusOf,
  type ContentType,
} from "./reply.ts";
export { ReplyStream } from "./reply-stream.ts";
