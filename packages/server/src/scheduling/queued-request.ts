import { InferenceError } from "@galatea/base";
import { releaseResponse, type InferenceRequest, type Instance, type RequestRecord } from "../inference/index.ts";
import { requestCancelled } from "./refusals.ts";
import type { RequestList } from "./request-list.ts";
import type { SchedulerResult } from "./scheduler.ts";

/**
 * The states before a request settles. `ended`: the request has an outcome, which is kept until the responses of earlier requests are sent.
 */
export type UnsettledState = "queued" | "executing" | "ended";

/** The interface of a scheduler to its requests. */
export interface RequestOwner {
  /**
   * Called after a request was cancelled or abandoned and has been rejected. The owner must then remove a waiting request from the queue.
   */
  requestAbandoned(request: QueuedRequest, was: UnsettledState): void;
}

/**
 * A request in a scheduler: its state in the queue, its promise and its abort listener. The object is its own `EventListener`, because
 * every request creates one and a separate listener would cost another allocation.
 */
export class QueuedRequest {
  readonly request: InferenceRequest;
  readonly record: RequestRecord;
  readonly promise: Promise<SchedulerResult>;
  at: UnsettledState | "settled" = "queued";

  list: RequestList<QueuedRequest> | null = null;
  ordinal = 0;
  previous: QueuedRequest | null = null;
  next: QueuedRequest | null = null;
  /** Index of its priority level. */
  level = 0;
  /** Requests with different keys cannot share a batch. */
  batchKey = "";
  /** Time of the clock that `record.queuedNs` uses; Infinity when no timeout applies. */
  deadlineNs = Number.POSITIVE_INFINITY;
  /** Index in the heap of deadlines; -1 when it is not in the heap. */
  heapIndex = -1;
  /** The instance that received the request; null while the request waits in the queue. */
  instance: Instance | null = null;
  /** The outcome in the state `ended`; null in all other states. */
  outcome: SchedulerResult | InferenceError | null = null;

  readonly #owner: RequestOwner;
  #resolve!: (settlement: SchedulerResult) => void;
  #reject!: (error: InferenceError) => void;
  #releaseInputs: (() => void) | null;

  constructor(request: InferenceRequest, record: RequestRecord, releaseInputs: () => void, owner: RequestOwner) {
    this.request = request;
    this.record = record;
    this.#owner = owner;
    this.#releaseInputs = releaseInputs;
    this.promise = new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
    request.signal?.addEventListener("abort", this);
  }

  start(instance: Instance, nowNs: number): void {
    this.at = "executing";
    this.instance = instance;
    this.record.startedNs = nowNs;
  }

  /** Sets a request that its instance did not start to `queued`. Returns false, and changes nothing, if the request has settled. */
  putBack(): boolean {
    if (this.at === "settled") return false;
    this.at = "queued";
    this.instance = null;
    this.record.startedNs = 0;
    return true;
  }

  /** Handles the abort event. */
  handleEvent(): void {
    this.abandon(requestCancelled(this.request));
  }

  /** Rejects the request with the error. Does nothing if the request has settled. */
  abandon(error: InferenceError): void {
    const was = this.at;
    if (was === "settled") return;
    if (was === "executing") this.instance?.abandonRequest(this.request);
    if (was === "ended") releaseOutcome(this.outcome);
    this.outcome = null;
    this.reject(error);
    this.#owner.requestAbandoned(this, was);
    if (was === "queued") this.releaseInputs();
  }

  /** Keeps the outcome until the responses of earlier requests are sent. */
  end(outcome: SchedulerResult | InferenceError): void {
    this.at = "ended";
    this.outcome = outcome;
  }

  /** Settles the request with the outcome. If the request has settled before, because its caller is gone, releases the response. */
  settle(outcome: SchedulerResult | InferenceError): void {
    if (this.at === "settled") releaseOutcome(outcome);
    else if (outcome instanceof InferenceError) this.reject(outcome);
    else {
      this.at = "settled";
      this.request.signal?.removeEventListener("abort", this);
      this.#resolve(outcome);
    }
  }

  reject(error: InferenceError): void {
    this.at = "settled";
    this.request.signal?.removeEventListener("abort", this);
    this.#reject(error);
  }

  /**
   * Releases the inputs, once. Called when no instance reads them any more: at once for a queued request, after the execution for an
   * executed one.
   */
  releaseInputs(): void {
    const release = this.#releaseInputs;
    this.#releaseInputs = null;
    release?.();
  }
}

function releaseOutcome(outcome: SchedulerResult | InferenceError | null): void {
  if (outcome !== null && outcome !== "sent" && !(outcome instanceof InferenceError)) releaseResponse(outcome);
}
