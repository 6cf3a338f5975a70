/** The links of a request in a list. */
export interface LinkedRequest<R extends LinkedRequest<R>> {
  /** The list that contains the request, or contained it last. */
  list: RequestList<R> | null;
  /** Arrival number of the request in `list`; requests that arrived earlier have lower numbers. */
  ordinal: number;
  previous: R | null;
  next: R | null;
}

/** Requests in order of arrival. A linked list, because any request can be removed from it in constant time. */
export class RequestList<R extends LinkedRequest<R>> {
  first: R | null = null;
  last: R | null = null;
  length = 0;
  #appendedCount = 0;

  append(request: R): void {
    request.list = this;
    request.ordinal = this.#appendedCount++;
    this.#insert(request, null);
  }

  /** Puts a removed request back into the list, ahead of requests that arrived after it. */
  putBack(request: R): void {
    let later = this.first;
    while (later !== null && later.ordinal < request.ordinal) later = later.next;
    this.#insert(request, later);
  }

  #insert(request: R, next: R | null): void {
    const previous = next === null ? this.last : next.previous;
    request.previous = previous;
    request.next = next;
    if (previous === null) this.first = request;
    else previous.next = request;
    if (next === null) this.last = request;
    else next.previous = request;
    this.length++;
  }

  remove(request: R): void {
    if (request.previous === null) this.first = request.next;
    else request.previous.next = request.next;
    if (request.next === null) this.last = request.previous;
    else request.next.previous = request.previous;
    request.previous = null;
    request.next = null;
    this.length--;
  }
}
