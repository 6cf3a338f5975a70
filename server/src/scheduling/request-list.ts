import type { QueuedRequest } from "./queued-request.ts";

/** Requests in order of arrival: a linked list through the requests themselves, so that leaving from the middle costs nothing. */
export class RequestList {
  first: QueuedRequest | null = null;
  last: QueuedRequest | null = null;
  length = 0;

  append(request: QueuedRequest): void {
    request.list = this;
    request.previous = this.last;
    request.next = null;
    if (this.last === null) this.first = request;
    else this.last.next = request;
    this.last = request;
    this.length++;
  }

  remove(request: QueuedRequest): void {
    if (request.previous === null) this.first = request.next;
    else request.previous.next = request.next;
    if (request.next === null) this.last = request.previous;
    else request.next.previous = request.previous;
    request.list = null;
    request.previous = null;
    request.next = null;
    this.length--;
  }
}
