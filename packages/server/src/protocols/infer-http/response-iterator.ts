import { InferenceError } from "@galatea/base";
import type { ServedModel } from "../../engine/index.ts";
import { releaseResponse, type ResponseSink, type InferenceRequest, type Outcome } from "../../inference/index.ts";

/** A response of the model that the iterating caller has not requested yet. */
interface PendingResponse {
  readonly outcome: Outcome;
  readonly taken: () => void;
}

/**
 * An iterator over the responses of a decoupled model to one request, for one `for await`. Requesting the next response acknowledges the
 * previous one, which limits how many responses the model produces ahead of its client. Stopping early cancels the request and releases the
 * remaining responses.
 */
export class ResponseIterator implements AsyncIterableIterator<Outcome, undefined>, ResponseSink {
  readonly #disconnect = new AbortController();
  readonly #waiting: PendingResponse[] = [];
  /** Acknowledges the last response that was returned. */
  #taken: (() => void) | null = null;
  #isOver = false;
  #isAbandoned = false;
  #changed: (() => void) | null = null;

  /** Sends the request to the model, and takes ownership of its tensors. */
  constructor(model: ServedModel, request: InferenceRequest) {
    const { signal: disconnect } = this.#disconnect;
    const signal = request.signal === null ? disconnect : AbortSignal.any([request.signal, disconnect]);
    model.stream({ ...request, signal }, this).catch((error: unknown) => {
      this.respond(InferenceError.from(error), true, () => {});
    });
  }

  respond(outcome: Outcome | null, isFinal: boolean, consumed: () => void): void {
    if (this.#isAbandoned) {
      release(outcome);
      return consumed();
    }
    if (outcome !== null) this.#waiting.push({ outcome, taken: consumed });
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
    const response = this.#waiting.shift();
    if (response === undefined) return { done: true, value: undefined };
    this.#taken = response.taken;
    return { done: false, value: response.outcome };
  }

  return(): Promise<IteratorResult<Outcome, undefined>> {
    this.#isAbandoned = true;
    this.#giveCredit();
    for (const { outcome, taken } of this.#waiting.splice(0)) {
      release(outcome);
      taken();
    }
    if (!this.#isOver) this.#disconnect.abort(new Error("the client no longer waits for the other responses"));
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
