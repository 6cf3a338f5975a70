/**
 * An HTTP/1.1 listener on a port or a Unix socket that limits all resources of a client. Exchanges have a signal that aborts when the
 * client disconnects; errors are sent in the KServe protocol's format. Independent of routes and models.
 */
export {
  reserveBodyMemory,
  asBodyMemory,
  BodyError,
  declaredLength,
  discardChunk,
  discardChunks,
  bufferBody,
  BufferedBody,
  readBody,
  readBodyToBuffer,
} from "./body.ts";
export { exchangeMemoryBytes, type Exchange } from "./exchange.ts";
export { defaultHttpLimits, type HttpLimits } from "./limits.ts";
export { openHttpListener, type HttpListenerOptions, type ListenAddress } from "./listener.ts";
export {
  errorBody,
  reply,
  replyError,
  replyFailure,
  replyJson,
  replyChunks,
  httpStatusOf,
  type ContentType,
} from "./reply.ts";
export { ReplyStream } from "./reply-stream.ts";
