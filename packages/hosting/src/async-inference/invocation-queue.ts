/** The part of a waiting request that is kept in memory. */
export interface QueuedEntry {
  readonly key: string;
  readonly receivedMs: number;
  readonly expiresMs: number;
  /** Bytes of an input that is kept in a record. */
  readonly inlineBytes: number;
}

/** The array is compacted after this many taken entries, if they are half of it. */
const takenMax = 1024;

/** The requests of one endpoint, first in, first out. */
export class InvocationQueue {
  #entries: QueuedEntry[] = [];
  #head = 0;
  #inlineBytes = 0;
  #runningInlineBytes = 0;
  /** The earliest expiry of any entry. */
  #expiresMs = Infinity;
  readonly #running = new Set<QueuedEntry>();

  get waitingCount(): number {
    return this.#entries.length - this.#head;
  }

  get runningCount(): number {
    return this.#running.size;
  }

  /** Number of entries, including running ones. */
  get count(): number {
    return this.waitingCount + this.runningCount;
  }

  get inlineBytes(): number {
    return this.#inlineBytes + this.#runningInlineBytes;
  }

  /** Time of the oldest waiting entry. */
  get oldestMs(): number | null {
    return this.#entries[this.#head]?.receivedMs ?? null;
  }

  push(entry: QueuedEntry): void {
    this.#entries.push(entry);
    this.#inlineBytes += entry.inlineBytes;
    this.#expiresMs = Math.min(this.#expiresMs, entry.expiresMs);
  }

  /** Takes the next entry, which is running from now on. */
  take(): QueuedEntry | null {
    const entry = this.#entries[this.#head];
    if (entry === undefined) return null;
    this.#head += 1;
    this.#inlineBytes -= entry.inlineBytes;
    this.#begin(entry);
    if (this.#head > takenMax && this.#head > this.waitingCount) {
      this.#entries = this.#entries.slice(this.#head);
      this.#head = 0;
    }
    return entry;
  }

  /** Takes the expired entries; each is running until `end`. */
  takeExpired(nowMs: number): readonly QueuedEntry[] {
    if (nowMs < this.#expiresMs) return [];
    return this.#takeWhere(({ expiresMs }) => expiresMs <= nowMs);
  }

  takeAll(): readonly QueuedEntry[] {
    return this.#takeWhere(() => true);
  }

  /** Puts a taken entry back to the head. */
  putBack(entry: QueuedEntry): void {
    this.end(entry);
    if (this.#head === 0) this.#entries.unshift(entry);
    else this.#entries[(this.#head -= 1)] = entry;
    this.#inlineBytes += entry.inlineBytes;
    this.#expiresMs = Math.min(this.#expiresMs, entry.expiresMs);
  }

  /** Ends a taken entry. */
  end(entry: QueuedEntry): void {
    if (this.#running.delete(entry)) this.#runningInlineBytes -= entry.inlineBytes;
  }

  #begin(entry: QueuedEntry): void {
    this.#running.add(entry);
    this.#runningInlineBytes += entry.inlineBytes;
  }

  #takeWhere(isTaken: (entry: QueuedEntry) => boolean): readonly QueuedEntry[] {
    const taken: QueuedEntry[] = [];
    const left: QueuedEntry[] = [];
    this.#expiresMs = Infinity;
    for (const entry of this.#entries.slice(this.#head)) {
      if (isTaken(entry)) {
        taken.push(entry);
        continue;
      }
      left.push(entry);
      this.#expiresMs = Math.min(this.#expiresMs, entry.expiresMs);
    }
    this.#entries = left;
    this.#head = 0;
    for (const entry of taken) {
      this.#inlineBytes -= entry.inlineBytes;
      this.#begin(entry);
    }
    return taken;
  }
}
