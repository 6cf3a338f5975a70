import { InferenceError } from "@galatea/base";
import { releaseResponse, type Outcome } from "../../inference/index.ts";
import { errorBody, ReplyStream, type Exchange } from "../http-listener/index.ts";

/** The content type of Triton's streamed answers. */
const eventStreamType = "text/event-stream; charset=utf-8";

/** An answer as text, latin1 (each character is one byte of UTF-8) or pieces of it, and the status of a reply that begins with it. */
export interface PrintedAnswer {
  readonly status: number;
  readonly text: string | readonly Uint8Array[];
}

/**
 * Sends each answer as an event when the client has taken the one before; the status is the first one's. What `print` throws for the
 * first goes to the caller, and nothing has been sent. The memory of an event is given back when it has left.
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
    // The client has gone: nobody is left to be told.
    if (!signal.aborted) throw error;
  }
}

/** An error among the answers. */
export function errorEvent(error: InferenceError): string {
  return `data: ${errorBody(error.message)}\n\n`;
}

/** An outcome that is released with its scope, or before. */
export function ownedOutcome(outcome: Outcome): { readonly outcome: Outcome; release(): void } & Disposable {
  let held = !(outcome instanceof InferenceError);
  const release = () => {
    if (held && !(outcome instanceof InferenceError)) releaseResponse(outcome);
    held = false;
  };
  return { outcome, release, [Symbol.dispose]: release };
}
