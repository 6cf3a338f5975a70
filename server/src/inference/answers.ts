import type { Outcome } from "./response.ts";

/**
 * Where the answers of a decoupled model to one request go, in order, as they are made.
 *
 * `respond` takes the outcome over; null with `isFinal` says that nothing more follows. `taken` is to be called once for each outcome, when
 * it has left: a model makes a bounded number of answers that were not taken, then it waits.
 */
export interface AnswerSink {
  respond(outcome: Outcome | null, isFinal: boolean, taken: () => void): void;
}
