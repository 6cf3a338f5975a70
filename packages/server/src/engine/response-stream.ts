import { InferenceError } from "@galatea/base";
import { releaseResponse, type ResponseSink, type InferenceResponse, type Outcome } from "../inference/index.ts";

/**
 * Delivers a request's responses to its sink. Exactly one response is the last, whether the request succeeds or fails. Later responses are
 * released.
 */
export class ResponseStream implements ResponseSink {
  readonly #sink: ResponseSink;
  readonly #reshape: ((response: InferenceResponse) => InferenceResponse) | null;
  #isOver = false;

  constructor(sink: ResponseSink, reshape: ((response: InferenceResponse) => InferenceResponse) | null) {
    this.#sink = sink;
    this.#reshape = reshape;
  }

  respond(outcome: Outcome | null, isFinal: boolean, consumed: () => void): void {
    if (this.#isOver) {
      if (outcome === null) return;
      if (!(outcome instanceof InferenceError)) releaseResponse(outcome);
      return consumed();
    }
    this.#isOver = isFinal;
    const isReshaped = this.#reshape !== null && outcome !== null && !(outcome instanceof InferenceError);
    this.#sink.respond(isReshaped ? this.#reshape(outcome) : outcome, isFinal, consumed);
  }

  /** Ends the request with an error, or with null when the model has ended it. */
  end(error: InferenceError | null): void {
    if (!this.#isOver) this.respond(error, true, () => {});
  }
}
