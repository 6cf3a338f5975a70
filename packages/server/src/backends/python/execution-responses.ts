import { InferenceError } from "@galatea/base";
import { releaseResponse, DeferredResponses, type InferenceRequest, type Outcome } from "../../inference/index.ts";
import { toOutcome, ResultDecoder, type FrameContext } from "./execution-codec.ts";
import { frameLimits } from "./frame-limits.ts";
import type { LentBlock } from "./lent-blocks.ts";
import type { PythonWorker } from "./python-worker.ts";
import { spaceRequestIdMax, encodeCredit, MalformedRecord, type WireDecoupledResponse } from "./wire.ts";

/** The responses to one request of an execution. */
interface RequestResponses {
  readonly request: InferenceRequest;
  readonly end: PromiseWithResolvers<Outcome | null>;
  isOpen: boolean;
  /** True if the request was cancelled. Its later responses are then dropped and not acknowledged. */
  isCancelled: boolean;
  unreadCount: number;
  /** Acknowledged responses that the worker has not been notified of. */
  creditCount: number;
}

export interface ExecutionResponsesOptions {
  readonly executionId: number;
  readonly batch: readonly InferenceRequest[];
  readonly frameContext: FrameContext;
  readonly worker: PythonWorker;
}

/** Number of acknowledgements after which the worker is notified. A message for each acknowledgement would cost more. */
const creditStep = frameLimits.unreadResponsesMax / 2;

/**
 * The responses of one execution that are sent separately, until each request has had its final response. For a decoupled model these are
 * all responses. For another model they are the responses that the RESULT frame marks as `later`.
 */
export class ExecutionResponses {
  readonly executionId: number;
  readonly batch: readonly InferenceRequest[];
  /** The results of the requests at the end of the execution. */
  readonly sent: readonly DeferredResponses[];
  readonly #frameContext: FrameContext;
  readonly #worker: PythonWorker;
  readonly #requests: readonly RequestResponses[];
  /** Memory that was lent for responses that have not arrived, by the id of the SPACE_REQUEST frame that requested the memory. */
  readonly #spaces = new Map<number, readonly LentBlock[]>();
  #openCount: number;
  #isReleased = false;

  constructor(
    { executionId, batch, frameContext, worker }: ExecutionResponsesOptions,
    isOpen = (_requestIndex: number) => true,
  ) {
    this.executionId = executionId;
    this.batch = batch;
    this.#frameContext = frameContext;
    this.#worker = worker;
    this.#requests = batch.map((request, requestIndex) => ({
      request,
      end: Promise.withResolvers<Outcome | null>(),
      isOpen: isOpen(requestIndex),
      isCancelled: false,
      unreadCount: 0,
      creditCount: 0,
    }));
    this.#openCount = this.#requests.filter((responses) => responses.isOpen).length;
    this.sent = this.#requests.map(({ end }) => new DeferredResponses(end.promise));
  }

  /** True if no more responses can arrive, because `execute` has returned and each request has had its final response. */
  get isOver(): boolean {
    return this.#isReleased && this.#openCount === 0;
  }

  /** True if the model waits for a client that does not read its responses. */
  get isBlocked(): boolean {
    return this.#requests.some(({ isOpen, unreadCount }) => isOpen && unreadCount >= frameLimits.unreadResponsesMax);
  }

  /** Records that `execute` has returned. */
  released(): void {
    this.#isReleased = true;
    this.#endSpaces();
  }

  /** Records memory that was lent for one response. A worker may request memory only while it has credit for a response. */
  lent(spaceRequestId: number, blocks: readonly LentBlock[]): void {
    if (
      spaceRequestId > spaceRequestIdMax ||
      this.#spaces.has(spaceRequestId) ||
      this.#spaces.size >= frameLimits.unreadResponsesMax * this.#requests.length
    )
      throw new MalformedRecord(`execution ${this.executionId} requests space too often`);
    this.#spaces.set(spaceRequestId, blocks);
  }

  received({ requestIndex, isFinal, spaceRequestId, response }: WireDecoupledResponse): void {
    const responses = this.#requests[requestIndex];
    if (responses?.isOpen !== true)
      throw new MalformedRecord(`a response to request ${requestIndex}, which has already had its final response`);
    // An error with the final flag needs no credit, because the model cannot continue after it.
    if (response !== null && !isFinal && responses.unreadCount >= frameLimits.unreadResponsesMax)
      throw new MalformedRecord("more responses than the worker has credit for");
    if (!this.#frameContext.isDecoupled && (response === null || !isFinal))
      throw new MalformedRecord("a response of a model that is not decoupled that is not its only one");
    const spaces = this.#spaces.get(spaceRequestId) ?? [];
    const outcome = response === null ? null : this.#toOutcome(response, spaces);
    this.#spaces.delete(spaceRequestId);
    this.#worker.lent.endSpaces(spaces);
    if (!this.#frameContext.isDecoupled) {
      this.#close(responses, outcome);
      return this.#endSpaces();
    }
    if (outcome !== null) responses.unreadCount++;
    if (isFinal) this.#close(responses, null);
    this.#forward(responses, requestIndex, outcome, isFinal);
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

  #forward(responses: RequestResponses, requestIndex: number, outcome: Outcome | null, isFinal: boolean): void {
    const { request, isCancelled } = responses;
    const sink = request.responseSink;
    if (sink !== undefined && !isCancelled)
      return sink.respond(outcome, isFinal, () => this.#acknowledge(responses, requestIndex));
    if (outcome === null) return;
    if (!(outcome instanceof InferenceError)) releaseResponse(outcome);
    this.#acknowledge(responses, requestIndex);
  }

  #acknowledge(responses: RequestResponses, requestIndex: number): void {
    responses.unreadCount--;
    if (!responses.isOpen || responses.isCancelled || ++responses.creditCount < creditStep) return;
    this.#worker.sendSoon(encodeCredit(this.executionId, requestIndex, responses.creditCount));
    responses.creditCount = 0;
  }

  /** Cancels a request. Returns the request's index if it waits for responses, otherwise -1. */
  cancelRequest(request: InferenceRequest): number {
    const requestIndex = this.#requests.findIndex((responses) => responses.request === request && responses.isOpen);
    if (requestIndex !== -1) this.#requests[requestIndex]!.isCancelled = true;
    return requestIndex;
  }

  /** Ends all requests that wait for responses with this error. The worker has reported the error, or has ended. */
  fail(error: InferenceError): void {
    for (const responses of this.#requests) if (responses.isOpen) this.#close(responses, error);
    this.released();
  }

  #close(responses: RequestResponses, last: Outcome | null): void {
    responses.isOpen = false;
    this.#openCount--;
    responses.end.resolve(last);
  }

  /** Releases the lent memory that was not used. Called when no more responses can arrive. */
  #endSpaces(): void {
    if (!this.isOver) return;
    for (const blocks of this.#spaces.values()) this.#worker.lent.endSpaces(blocks);
    this.#spaces.clear();
  }
}
