/** The links of a request in a list. */
export interface Listed<R extends Listed<R>> {
  list: RequestList<R> | null;
  previous: R | null;
  next: R | null;
}

/** Requests in order of arrival: a linked list through the requests themselves, so that removing any of them is cheap. */
export class RequestList<R extends Listed<R>> {
  first: R | null = null;
  last: R | null = null;
  length = 0;

  append(request: R): void {
    request.list = this;
    request.previous = this.last;
    request.next = null;
    if (this.last === null) this.first = request;
    else this.last.next = request;
    this.last = request;
    this.length++;
  }

  remove(request: R): void {
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
