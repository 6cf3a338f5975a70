import { InferenceError } from "@galatea/base";
import { releaseResponse, type Outcome } from "../../inference/index.ts";
import { errorBody, ReplyStream, type Exchange } from "../http-listener/index.ts";

/** The content type of Triton's streamed responses. */
const eventStreamType = "text/event-stream; charset=utf-8";

/**
 * A response as text, latin1 (each character is one byte of UTF-8) or chunks of it, and the status of an HTTP response that begins with
 * it.
 */
export interface PrintedAnswer {
  readonly status: number;
  readonly text: string | readonly Uint8Array[];
}

/**
 * Sends each response as an event after the client has read the previous one; the status is the first one's. An exception of `print` for
 * the first is thrown before anything was sent. The memory of an event is released when it was sent.
 */
export async function replyEvents(
  exchange: Exchange,
  answers: AsyncIterable<Outcome>,
  print: (outcome: Outcome, hasBegun: boolean) => Promise<PrintedAnswer>,
): Promise<void> {
  const { signal, memory } = exchange;
  let stream: ReplyStream | null = null;
  try {
    for await (const outcome of answers) {
      using answer = ownedOutcome(outcome);
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
    // The client has gone: nobody receives the error.
    if (!signal.aborted) throw error;
  }
}

/** Returns the event of an error. */
export function errorEvent(error: InferenceError): string {
  return `data: ${errorBody(error.message)}\n\n`;
}

/** Returns an outcome that is released with its scope, or before. */
export function ownedOutcome(outcome: Outcome): { readonly outcome: Outcome; release(): void } & Disposable {
  let held = !(outcome instanceof InferenceError);
  const release = () => {
    if (held && !(outcome instanceof InferenceError)) releaseResponse(outcome);
    held = false;
  };
  return { outcome, release, [Symbol.dispose]: release };
}
