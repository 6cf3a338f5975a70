import type { InferenceError } from "@galatea/base";
import type { QueuedRequest } from "./queued-request.ts";
import type { Settlement } from "./scheduler.ts";

/**
 * Lets answers leave in the order in which their requests were enqueued (`preserve_ordering`). The place is taken on arrival, so
 * the order holds across instances. A request that was given up or timed out gives its place up; it settles by itself.
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

  /** Settles every answer that no earlier request holds back. */
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
