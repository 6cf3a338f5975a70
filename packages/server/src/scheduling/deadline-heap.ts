import type { QueuedRequest } from "./queued-request.ts";

/** A heap of requests by deadline, the earliest on top. Removing any element costs O(log n). */
export class DeadlineHeap {
  readonly #heap: QueuedRequest[] = [];

  get top(): QueuedRequest | null {
    return this.#heap[0] ?? null;
  }

  add(request: QueuedRequest): void {
    this.#heap.push(request);
    this.#rise(this.#heap.length - 1, request);
  }

  /** Does nothing when the request is not in the heap. */
  remove(request: QueuedRequest): void {
    const index = request.heapIndex;
    if (index < 0) return;
    request.heapIndex = -1;
    const last = this.#heap.pop() as QueuedRequest;
    if (last === request) return;
    this.#rise(index, last);
    this.#sink(last.heapIndex, last);
  }

  #rise(from: number, request: QueuedRequest): void {
    let index = from;
    while (index > 0) {
      const parentIndex = (index - 1) >> 1;
      const parent = this.#heap[parentIndex] as QueuedRequest;
      if (parent.deadlineNs <= request.deadlineNs) break;
      this.#place(index, parent);
      index = parentIndex;
    }
    this.#place(index, request);
  }

  #sink(from: number, request: QueuedRequest): void {
    let index = from;
    for (;;) {
      let childIndex = 2 * index + 1;
      let child = this.#heap[childIndex];
      if (child === undefined) break;
      const right = this.#heap[childIndex + 1];
      if (right !== undefined && right.deadlineNs < child.deadlineNs) {
        child = right;
        childIndex++;
      }
      if (child.deadlineNs >= request.deadlineNs) break;
      this.#place(index, child);
      index = childIndex;
    }
    this.#place(index, request);
  }

  #place(index: number, request: QueuedRequest): void {
    this.#heap[index] = request;
    request.heapIndex = index;
  }
}
