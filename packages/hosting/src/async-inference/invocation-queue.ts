/** The fields of a queued request that are kept in memory. The full request is a record on disk. */
export interface QueuedInvocation {
  readonly key: string;
  readonly receivedMs: number;
  readonly expiresMs: number;
  /** Bytes of the input if it was in the request's body; 0 for an input in S3. */
  readonly inlineBytes: number;
}

/** The array is compacted when at least this many entries, and at least half of the array, have been dequeued. */
const compactAfter = 1024;

/** A first-in, first-out queue of one endpoint's requests. */
export class InvocationQueue {
  #entries: QueuedInvocation[] = [];
  #head = 0;
  #inlineBytes = 0;
  #runningInlineBytes = 0;
  /** No waiting entry expires before this time, in epoch milliseconds. */
  #expiresMs = Infinity;
  readonly #running = new Set<QueuedInvocation>();

  get waitingCount(): number {
    return this.#entries.length - this.#head;
  }

  get runningCount(): number {
    return this.#running.size;
  }

  /** Number of waiting and running entries. */
  get count(): number {
    return this.waitingCount + this.runningCount;
  }

  get inlineBytes(): number {
    return this.#inlineBytes + this.#runningInlineBytes;
  }

  /** Time at which the oldest waiting request was received; null if none waits. */
  get oldestMs(): number | null {
    return this.#entries[this.#head]?.receivedMs ?? null;
  }

  push(entry: QueuedInvocation): void {
    this.#entries.push(entry);
    this.#inlineBytes += entry.inlineBytes;
    this.#expiresMs = Math.min(this.#expiresMs, entry.expiresMs);
  }

  /** Removes and returns the oldest entry, which counts as running until `complete` or `requeue`. Returns null if the queue is empty. */
  dequeue(): QueuedInvocation | null {
    const entry = this.#entries[this.#head];
    if (entry === undefined) return null;
    this.#head += 1;
    this.#inlineBytes -= entry.inlineBytes;
    this.#begin(entry);
    if (this.#head > compactAfter && this.#head > this.waitingCount) {
      this.#entries = this.#entries.slice(this.#head);
      this.#head = 0;
    }
    return entry;
  }

  /** Removes and returns the expired entries. Each counts as running until `complete`. */
  dequeueExpired(nowMs: number): readonly QueuedInvocation[] {
    if (nowMs < this.#expiresMs) return [];
    return this.#removeWhere(({ expiresMs }) => expiresMs <= nowMs);
  }

  dequeueAll(): readonly QueuedInvocation[] {
    return this.#removeWhere(() => true);
  }

  /** Puts a running entry back to the head of the queue. */
  requeue(entry: QueuedInvocation): void {
    this.complete(entry);
    if (this.#head === 0) this.#entries.unshift(entry);
    else this.#entries[(this.#head -= 1)] = entry;
    this.#inlineBytes += entry.inlineBytes;
    this.#expiresMs = Math.min(this.#expiresMs, entry.expiresMs);
  }

  /** Removes a running entry permanently. */
  complete(entry: QueuedInvocation): void {
    if (this.#running.delete(entry)) this.#runningInlineBytes -= entry.inlineBytes;
  }

  #begin(entry: QueuedInvocation): void {
    this.#running.add(entry);
    this.#runningInlineBytes += entry.inlineBytes;
  }

  #removeWhere(isTaken: (entry: QueuedInvocation) => boolean): readonly QueuedInvocation[] {
    const acquired: QueuedInvocation[] = [];
    const left: QueuedInvocation[] = [];
    this.#expiresMs = Infinity;
    for (const entry of this.#entries.slice(this.#head)) {
      if (isTaken(entry)) {
        acquired.push(entry);
        continue;
      }
      left.push(entry);
      this.#expiresMs = Math.min(this.#expiresMs, entry.expiresMs);
    }
    this.#entries = left;
    this.#head = 0;
    for (const entry of acquired) {
      this.#inlineBytes -= entry.inlineBytes;
      this.#begin(entry);
    }
    return acquired;
  }
}
