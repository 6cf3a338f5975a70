import { InferenceError } from "@galatea/base";
import { releaseResponse, DeferredResponses, type InferenceRequest, type Outcome } from "../../inference/index.ts";
import { toOutcome, ResultDecoder, type FrameContext } from "./execution-codec.ts";
import { frameLimits } from "./frame-limits.ts";
import type { LentBlock } from "./lent-blocks.ts";
import type { PythonWorker } from "./python-worker.ts";
import { spaceRequestIdMax, encodeCredit, MalformedRecord, type WireDecoupledResponse } from "./wire.ts";

/** The responses to one request of an execution. */
interface Answers {
  readonly request: InferenceRequest;
  readonly end: PromiseWithResolvers<Outcome | null>;
  isOpen: boolean;
  /** True when the request was cancelled: its later responses are dropped and not acknowledged. */
  isGivenUp: boolean;
  untakenCount: number;
  /** Acknowledged responses that the worker has not been told about. */
  creditCount: number;
}

export interface ExecutionResponsesOptions {
  readonly executionId: number;
  readonly batch: readonly InferenceRequest[];
  readonly frameContext: FrameContext;
  readonly worker: PythonWorker;
}

/** Number of acknowledgements that are sent to the worker together, because a message for each would cost more. */
const creditStep = frameLimits.answersMax / 2;

/**
 * The responses to the requests of one execution that are sent separately, until each request has had its final one. For a decoupled model
 * these are all responses; for another model, those that its RESULT frame announces for later.
 */
export class ExecutionResponses {
  readonly executionId: number;
  readonly batch: readonly InferenceRequest[];
  /** The results of the requests at the end of the execution. */
  readonly sent: readonly DeferredResponses[];
  readonly #frameContext: FrameContext;
  readonly #worker: PythonWorker;
  readonly #answers: readonly Answers[];
  /** Memory that was lent for responses that have not arrived, by the id of the ASK frame that requested it. */
  readonly #asked = new Map<number, readonly LentBlock[]>();
  #openCount: number;
  #isReleased = false;

  constructor(
    { executionId, batch, frameContext, worker }: ExecutionResponsesOptions,
    isOpen = (_place: number) => true,
  ) {
    this.executionId = executionId;
    this.batch = batch;
    this.#frameContext = frameContext;
    this.#worker = worker;
    this.#answers = batch.map((request, place) => ({
      request,
      end: Promise.withResolvers<Outcome | null>(),
      isOpen: isOpen(place),
      isGivenUp: false,
      untakenCount: 0,
      creditCount: 0,
    }));
    this.#openCount = this.#answers.filter((answers) => answers.isOpen).length;
    this.sent = this.#answers.map(({ end }) => new DeferredResponses(end.promise));
  }

  /** True when no more responses can arrive: `execute` has returned, and each request has had its final response. */
  get isOver(): boolean {
    return this.#isReleased && this.#openCount === 0;
  }

  /** True if the model waits for a client that does not read its responses. */
  get isHeldUp(): boolean {
    return this.#answers.some(({ isOpen, untakenCount }) => isOpen && untakenCount >= frameLimits.answersMax);
  }

  /** Records that `execute` has returned. */
  released(): void {
    this.#isReleased = true;
    this.#endSpaces();
  }

  /** Records memory that was lent for one response. A worker may request only as much as it has credit for. */
  lent(askId: number, blocks: readonly LentBlock[]): void {
    if (
      askId > spaceRequestIdMax ||
      this.#asked.has(askId) ||
      this.#asked.size >= frameLimits.answersMax * this.#answers.length
    )
      throw new MalformedRecord(`execution ${this.executionId} requests space too often`);
    this.#asked.set(askId, blocks);
  }

  answered({ place, isFinal, askId, response }: WireDecoupledResponse): void {
    const answers = this.#answers[place];
    if (answers?.isOpen !== true)
      throw new MalformedRecord(`a response to request ${place}, which has already had its final response`);
    // An error with the final flag needs no credit, because the model cannot continue after it.
    if (response !== null && !isFinal && answers.untakenCount >= frameLimits.answersMax)
      throw new MalformedRecord("more responses than the worker has credit for");
    if (!this.#frameContext.isDecoupled && (response === null || !isFinal))
      throw new MalformedRecord("a response of a model that is not decoupled that is not its only one");
    const spaces = this.#asked.get(askId) ?? [];
    const outcome = response === null ? null : this.#toOutcome(response, spaces);
    this.#asked.delete(askId);
    this.#worker.lent.endSpaces(spaces);
    if (!this.#frameContext.isDecoupled) {
      this.#close(answers, outcome);
      return this.#endSpaces();
    }
    if (outcome !== null) answers.untakenCount++;
    if (isFinal) this.#close(answers, null);
    this.#pass(answers, place, outcome, isFinal);
    this.#endSpaces();
  }

  #toOutcome(response: NonNullable<WireDecoupledResponse["response"]>, spaces: readonly LentBlock[]): Outcome {
    const find = (lentId: number) => {
      const lent = spaces.find((space) => space.lentId === lentId);
      if (lent === undefined) throw new MalformedRecord(`a response in block ${lentId}, which was not lent to it`);
      return lent;
    };
    return toOutcome(response, this.#frameContext, new ResultDecoder([], find));
  }

  #pass(answers: Answers, place: number, outcome: Outcome | null, isFinal: boolean): void {
    const { request, isGivenUp } = answers;
    const sink = request.answers;
    if (sink !== undefined && !isGivenUp) return sink.respond(outcome, isFinal, () => this.#taken(answers, place));
    if (outcome === null) return;
    if (!(outcome instanceof InferenceError)) releaseResponse(outcome);
    this.#taken(answers, place);
  }

  #taken(answers: Answers, place: number): void {
    answers.untakenCount--;
    if (!answers.isOpen || answers.isGivenUp || ++answers.creditCount < creditStep) return;
    this.#worker.sendSoon(encodeCredit(this.executionId, place, answers.creditCount));
    answers.creditCount = 0;
  }

  /** Cancels a request. Returns its index if it waits for responses; otherwise -1. */
  givenUp(request: InferenceRequest): number {
    const place = this.#answers.findIndex((answers) => answers.request === request && answers.isOpen);
    if (place !== -1) this.#answers[place]!.isGivenUp = true;
    return place;
  }

  /** Ends all requests that wait for responses with the error: the worker has reported it, or has ended. */
  fail(error: InferenceError): void {
    for (const answers of this.#answers) if (answers.isOpen) this.#close(answers, error);
    this.released();
  }

  #close(answers: Answers, last: Outcome | null): void {
    answers.isOpen = false;
    this.#openCount--;
    answers.end.resolve(last);
  }

  /** Releases the lent memory that was not used, when no more responses can arrive. */
  #endSpaces(): void {
    if (!this.isOver) return;
    for (const blocks of this.#asked.values()) this.#worker.lent.endSpaces(blocks);
    this.#asked.clear();
  }
}
