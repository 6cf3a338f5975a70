import { executionAsyncResource } from "node:async_hooks";
import type { ServerHttp2Session } from "node:http2";

/**
 * Prevents the garbage collection of the native part of `session` until the streams that ended with the session have been freed. Must be
 * called before the session's first frame is read.
 *
 * Without this a client can end the process. If a read ends in the middle of a HEADERS frame, the GOAWAY frame that ends the session closes
 * that stream, and Node frees the stream in the event loop's next check phase. If the session is collected before that phase, Node finds
 * the header fields of the stream in the session's memory and aborts with `Assertion failed: (current_nghttp2_memory_) == (0)`.
 */
export function retainNativeSession(session: ServerHttp2Session): void {
  // Node reports the client's first SETTINGS frame, which precedes all streams, in the async context of the native session.
  session.once("remoteSettings", () => {
    const native = executionAsyncResource();
    session.once("close", () => setImmediate((_freed: object) => {}, native));
  });
}
