import { InferenceError } from "@galatea/base";
import { releaseResponse, type Outcome } from "../../inference/index.ts";
import { errorBody, ReplyStream, type Exchange } from "../http-listener/index.ts";

/** The content type of Triton's streamed responses. */
const eventStreamType = "text/event-stream; charset=utf-8";

/**
 * The text of a response in latin1 (each character is one byte of UTF-8) or chunks of it, and the HTTP status if it is the first response.
 */
export interface PrintedResponse {
  readonly status: number;
  readonly text: string | readonly Uint8Array[];
}

/**
 * Sends each response as a server-sent event after the client has read the previous one. The HTTP status is that of the first response; an
 * exception of `print` for it is thrown before anything was sent. The memory of an event is released when it was sent.
 */
export async function replyEvents(
  exchange: Exchange,
  answers: AsyncIterable<Outcome>,
  print: (outcome: Outcome, hasBegun: boolean) => Promise<PrintedResponse>,
): Promise<void> {
  const { signal, memory } = exchange;
  let stream: ReplyStream | null = null;
  try {
    for await (const outcome of answers) {
      using answer = disposableOutcome(outcome);
      if (signal.aborted) return;
      const heldBytes = memory.bytes;
      const { status, text } = await print(answer.outcome, stream !== null);
      answer.release();
      if (signal.aborted) return;
      stream ??= new ReplyStream(exchange, status, eventStreamType);
      await stream.write(text);
      memory.shrinkTo(heldBytes);
    }
    if (signal.aborted) return;
    stream ??= new ReplyStream(exchange, 200, eventStreamType);
    stream.end();
  } catch (error) {
    // After the client has disconnected, the error concerns no one.
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
