import type { Outcome } from "./response.ts";

/**
 * Receives the responses to one request of a decoupled model, in order, as they are produced. `respond` takes ownership of the outcome;
 * null with `isFinal` ends the responses without another one. `taken` returns credit to the producer: call it once for each outcome, when
 * it was sent. A producer waits when too many of its responses are not acknowledged.
 */
export interface ResponseSink {
  respond(outcome: Outcome | null, isFinal: boolean, taken: () => void): void;
}

/**
 * The result of an execution for a request whose responses are sent later, or to its sink. The request is released with the execution: its
 * instance is free and its inputs are no longer used. It completes when `ended` resolves; until then it counts as in flight.
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
