import type { InferenceError } from "@galatea/base";
import type { QueuedRequest, UnsettledState } from "./queued-request.ts";
import type { SchedulerResult } from "./scheduler.ts";

/**
 * Sends responses in the order in which their requests arrived (`preserve_ordering`), across all instances. A cancelled or timed-out
 * request is removed from the order and settles at once.
 */
export class ResponseOrder {
  #locations: QueuedRequest[] = [];
  #head = 0;
  /** Number of requests at and after the head that have settled out of order. */
  #leftCount = 0;
  /** Number of outcomes that wait for earlier responses. */
  endedCount = 0;

  enter(request: QueuedRequest): void {
    this.#locations.push(request);
  }

  settle(request: QueuedRequest, outcome: SchedulerResult | InferenceError): void {
    if (request.at === "settled") return request.settle(outcome);
    request.end(outcome);
    this.endedCount++;
    this.#advance();
  }

  /** Records that a request has settled out of order, and settles the responses that it blocked. */
  left(was: UnsettledState): void {
    if (was === "ended") this.endedCount--;
    this.#leftCount++;
    this.#advance();
  }

  /** Settles every response that no earlier request blocks. */
  #advance(): void {
    for (let next = this.#locations[this.#head]; next !== undefined; next = this.#locations[this.#head]) {
      if (next.at === "settled") this.#leftCount--;
      else if (next.outcome === null) break;
      else {
        this.endedCount--;
        next.settle(next.outcome);
        next.outcome = null;
      }
      this.#head++;
    }
    // Without this, cancelled requests that follow a slow one would use memory until the slow one ends.
    const goneCount = this.#head + this.#leftCount;
    if (goneCount <= 32 || goneCount * 2 <= this.#locations.length) return;
    this.#locations = this.#locations.slice(this.#head).filter(({ at }) => at !== "settled");
    this.#head = 0;
    this.#leftCount = 0;
  }
}
