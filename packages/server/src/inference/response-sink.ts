import type { Outcome } from "./response.ts";

/**
 * Receives the responses to one request of a decoupled model, in order, as they are produced. `respond` takes ownership of the outcome;
 * null with `isFinal` ends the responses without another one. The sink must call `consumed` once for each outcome, after it was sent, to
 * acknowledge it. A producer pauses while too many of its responses are not acknowledged.
 */
export interface ResponseSink {
  respond(outcome: Outcome | null, isFinal: boolean, consumed: () => void): void;
}

/**
 * The result of an execution for a request whose responses are sent later, or to its sink. When the execution ends, its instance is free
 * and the request's inputs are no longer used. The request completes when `ended` resolves and counts as in flight until then.
 */
export class DeferredResponses {
  /**
   * Resolves with the only response, which the receiver owns; with null after the last response to a sink; or with an InferenceError, after
   * which there are no more responses. Never rejects.
   */
  readonly ended: Promise<Outcome | null>;

  constructor(ended: Promise<Outcome | null>) {
    this.ended = ended;
  }
}
