import { InferenceError } from "@galatea/base";
import { releaseResponse, type Outcome } from "../../inference/index.ts";
import { errorBody, ReplyStream, type Exchange } from "../http-listener/index.ts";

/** The content type of Triton's streamed responses. */
const eventStreamType = "text/event-stream; charset=utf-8";

/**
 * A printed response: its text in latin1 (each character is one byte of UTF-8) or chunks of it. `status` is the HTTP status to send if the
 * response is the first one.
 */
export interface PrintedResponse {
  readonly status: number;
  readonly text: string | readonly Uint8Array[];
}

/**
 * Sends each response as a server-sent event after the client has read the previous one. The HTTP status is that of the first response. If
 * `print` throws for the first response, the exception is thrown before anything was sent. The memory of an event is released after it was
 * sent.
 */
export async function replyEvents(
  exchange: Exchange,
  responses: AsyncIterable<Outcome>,
  print: (outcome: Outcome, hasStarted: boolean) => Promise<PrintedResponse>,
): Promise<void> {
  const { signal, memory } = exchange;
  let stream: ReplyStream | null = null;
  try {
    for await (const outcome of responses) {
      using response = disposableOutcome(outcome);
      if (signal.aborted) return;
      const heldBytes = memory.bytes;
      const { status, text } = await print(response.outcome, stream !== null);
      response.release();
      if (signal.aborted) return;
      stream ??= new ReplyStream(exchange, status, eventStreamType);
      await stream.write(text);
      memory.shrinkTo(heldBytes);
    }
    if (signal.aborted) return;
    stream ??= new ReplyStream(exchange, 200, eventStreamType);
    stream.end();
  } catch (error) {
    // If the client has disconnected, no response can report the error, so it is ignored.
    if (!signal.aborted) throw error;
  }
}

/** Returns the text of a server-sent event with an error. */
export function errorEvent(error: InferenceError): string {
  return `data: ${errorBody(error.message)}\n\n`;
}

/** Makes an outcome disposable: its response is released at the end of the scope, or earlier by `release`. */
export function disposableOutcome(outcome: Outcome): { readonly outcome: Outcome; release(): void } & Disposable {
  let held = !(outcome instanceof InferenceError);
  const release = () => {
    if (held && !(outcome instanceof InferenceError)) releaseResponse(outcome);
    held = false;
  };
  return { outcome, release, [Symbol.dispose]: release };
}
