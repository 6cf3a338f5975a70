import type { Outcome } from "./response.ts";

/**
 * Where the answers of a decoupled model, or of an ensemble of one, to one request go, in order, as they are made.
 *
 * `respond` takes the outcome over; null with `isFinal` says that nothing more follows. `taken` is the producer's credit: to be called
 * once for each outcome, when it has left. A producer is a bounded number of answers ahead of what was taken, then it waits.
 */
export interface AnswerSink {
  respond(outcome: Outcome | null, isFinal: boolean, taken: () => void): void;
}

/**
 * What an execution leaves of a request whose responses come after it, or go to its sink. The request has two ends: it is released with the
 * execution, when its instance is free and its inputs are nobody's, and it is over when `ended` resolves, until when it counts as in flight.
 */
export class SentAnswers {
  /**
   * Resolves with the one response, which the receiver owns; of a request with a sink, after its last response, with null. With an
   * InferenceError where there are no more. Never rejects.
   */
  readonly ended: Promise<Outcome | null>;

  constructor(ended: Promise<Outcome | null>) {
    this.ended = ended;
  }
}
