import type { Outcome } from "./response.ts";

/**
 * Receives the responses of a decoupled model, or of an ensemble with one, to one request, in order, as they are produced. `respond` owns
 * the outcome; null with `isFinal` ends the responses. `taken` is the producer's credit: call it once for each outcome, when it was sent.
 * A producer may be a bounded number of responses ahead of the credits, then it waits.
 */
export interface AnswerSink {
  respond(outcome: Outcome | null, isFinal: boolean, taken: () => void): void;
}

/**
 * The result of an execution for a request whose responses come later, or go to its sink. Such a request ends twice. It is released with
 * the execution: its instance is free and its inputs are unused. It is over when `ended` resolves; until then it counts as in flight.
 */
export class SentAnswers {
  /**
   * Resolves with the one response, which the receiver owns, or with null after the last response to a sink. Resolves with an
   * InferenceError when there are no more responses. Never rejects.
   */
  readonly ended: Promise<Outcome | null>;

  constructor(ended: Promise<Outcome | null>) {
    this.ended = ended;
  }
}
