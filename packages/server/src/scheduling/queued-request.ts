import { InferenceError } from "@galatea/base";
import { releaseResponse, type InferenceRequest, type Instance, type RequestRecord } from "../inference/index.ts";
import { requestCancelled } from "./refusals.ts";
import type { RequestList } from "./request-list.ts";
import type { Settlement } from "./scheduler.ts";

/** `ended`: its outcome waits for the responses of earlier requests. */
export type UnsettledState = "queued" | "executing" | "ended";

/** The interface of a scheduler to its requests. */
export interface RequestOwner {
  /** Called after a request was cancelled or abandoned and has been rejected. A waiting request must leave the queue now. */
  givenUp(request: QueuedRequest, was: UnsettledState): void;
}

/**
 * One request in a scheduler: its position in the queue, its promise, its abort listener. A class whose constructor creates all fields,
 * and an `EventListener` itself, because one is created per request.
 */
export class QueuedRequest {
  readonly request: InferenceRequest;
  readonly record: RequestRecord;
  readonly promise: Promise<Settlement>;
  at: UnsettledState | "settled" = "queued";

  list: RequestList<QueuedRequest> | null = null;
  ordinal = 0;
  previous: QueuedRequest | null = null;
  next: QueuedRequest | null = null;
  /** Index of its priority level. */
  level = 0;
  /** Requests whose keys differ cannot share a batch. */
  batchKey = "";
  /** On the clock of `record.queuedNs`; Infinity where no timeout applies. */
  deadlineNs = Number.POSITIVE_INFINITY;
  /** Index in the heap of deadlines, -1 outside. */
  heapIndex = -1;
  /** The instance to which it was handed; null while it waits in the queue. */
  instance: Instance | null = null;
  /** The outcome that waits for the responses of earlier requests. */
  outcome: Settlement | InferenceError | null = null;

  readonly #owner: RequestOwner;
  #resolve!: (settlement: Settlement) => void;
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

  /** Makes a request wait again that its instance did not start; returns whether anything still waits for it. */
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

  /** Rejects the request with the error; does nothing when it has settled. */
  abandon(error: InferenceError): void {
    const was = this.at;
    if (was === "settled") return;
    if (was === "executing") this.instance?.givenUp(this.request);
    if (was === "ended") releaseOutcome(this.outcome);
    this.outcome = null;
    this.reject(error);
    this.#owner.givenUp(this, was);
    if (was === "queued") this.releaseInputs();
  }

  /** Keeps the outcome until the responses of earlier requests have left. */
  end(outcome: Settlement | InferenceError): void {
    this.at = "ended";
    this.outcome = outcome;
  }

  /** Settles the request; releases a response whose caller is gone. */
  settle(outcome: Settlement | InferenceError): void {
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

  /** Called when nothing reads the inputs any more: at once for a queued request, after the execution for one that executed. */
  releaseInputs(): void {
    const release = this.#releaseInputs;
    this.#releaseInputs = null;
    release?.();
  }
}

function releaseOutcome(outcome: Settlement | InferenceError | null): void {
  if (outcome !== null && outcome !== "sent" && !(outcome instanceof InferenceError)) releaseResponse(outcome);
}
