import { InferenceError } from "@galatea/base";
import type { ServedModel } from "../../engine/index.ts";
import { releaseResponse, type AnswerSink, type InferenceRequest, type Outcome } from "../../inference/index.ts";

/** An answer that nobody has asked for yet. */
interface WaitingAnswer {
  readonly outcome: Outcome;
  readonly taken: () => void;
}

/**
 * The answers of a decoupled model to one request, for one `for await`. An answer counts as taken when the next one is asked for, so that
 * the model is never further ahead of its client than its credit allows. Whoever stops before the end gives the request up: the
 * model sees it cancelled, and what has come or still comes is released.
 */
export class StreamedAnswers implements AsyncIterableIterator<Outcome, undefined>, AnswerSink {
  readonly #leaving = new AbortController();
  readonly #waiting: WaitingAnswer[] = [];
  /** Of the answer that was handed out last. */
  #taken: (() => void) | null = null;
  #isOver = false;
  #hasLeft = false;
  #changed: (() => void) | null = null;

  /** Takes the request's tensors over and asks the model. */
  constructor(model: ServedModel, request: InferenceRequest) {
    const { signal: leaving } = this.#leaving;
    const signal = request.signal === null ? leaving : AbortSignal.any([request.signal, leaving]);
    model.stream({ ...request, signal }, this).catch((error: unknown) => {
      this.respond(InferenceError.from(error), true, () => {});
    });
  }

  respond(outcome: Outcome | null, isFinal: boolean, taken: () => void): void {
    if (this.#hasLeft) {
      release(outcome);
      return taken();
    }
    if (outcome !== null) this.#waiting.push({ outcome, taken });
    if (isFinal) this.#isOver = true;
    this.#changed?.();
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  async next(): Promise<IteratorResult<Outcome, undefined>> {
    this.#giveCredit();
    while (this.#waiting.length === 0 && !this.#isOver) {
      await new Promise<void>((resolve) => (this.#changed = resolve));
    }
    const answer = this.#waiting.shift();
    if (answer === undefined) return { done: true, value: undefined };
    this.#taken = answer.taken;
    return { done: false, value: answer.outcome };
  }

  return(): Promise<IteratorResult<Outcome, undefined>> {
    this.#hasLeft = true;
    this.#giveCredit();
    for (const { outcome, taken } of this.#waiting.splice(0)) {
      release(outcome);
      taken();
    }
    if (!this.#isOver) this.#leaving.abort(new Error("nobody waits for the other answers"));
    return Promise.resolve({ done: true, value: undefined });
  }

  #giveCredit(): void {
    this.#taken?.();
    this.#taken = null;
  }
}

function release(outcome: Outcome | null): void {
  if (outcome !== null && !(outcome instanceof InferenceError)) releaseResponse(outcome);
}
