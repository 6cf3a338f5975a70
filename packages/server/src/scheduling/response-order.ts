import type { InferenceError } from "@galatea/base";
import type { QueuedRequest } from "./queued-request.ts";
import type { Settlement } from "./scheduler.ts";

/**
 * Sends responses in the order in which their requests were enqueued (`preserve_ordering`). A request gets its position on arrival, so
 * the order is the same across instances. A cancelled or timed-out request leaves its position, and settles by itself.
 */
export class ResponseOrder {
  #places: QueuedRequest[] = [];
  #head = 0;

  enter(request: QueuedRequest): void {
    this.#places.push(request);
  }

  settle(request: QueuedRequest, outcome: Settlement | InferenceError): void {
    if (request.at === "settled") request.settle(outcome);
    else request.held = outcome;
    this.advance();
  }

  /** Settles every response that no earlier request blocks. */
  advance(): void {
    while (this.#head < this.#places.length) {
      const next = this.#places[this.#head] as QueuedRequest;
      if (next.at !== "settled") {
        const outcome = next.held;
        if (outcome === null) break;
        next.held = null;
        next.settle(outcome);
      }
      this.#head++;
    }
    if (this.#head > 32 && this.#head * 2 > this.#places.length) {
      this.#places = this.#places.slice(this.#head);
      this.#head = 0;
    }
  }
}
