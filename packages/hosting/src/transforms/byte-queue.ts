/** A queue of received bytes. Reading copies bytes only if the range spans several chunks. */
export class ByteQueue {
  readonly #segments: Buffer[] = [];
  #byteLength = 0;

  get byteLength(): number {
    return this.#byteLength;
  }

  push(chunk: Buffer): void {
    if (chunk.length === 0) return;
    this.#segments.push(chunk);
    this.#byteLength += chunk.length;
  }

  /** Returns the first `count` bytes without removing them; null if there are fewer. */
  peek(count: number): Buffer | null {
    if (this.#byteLength < count) return null;
    const [first] = this.#segments;
    if (first !== undefined && first.length >= count) return first.subarray(0, count);
    const chunks: Buffer[] = [];
    let left = count;
    for (const chunk of this.#segments) {
      if (left <= 0) break;
      chunks.push(chunk.subarray(0, left));
      left -= chunk.length;
    }
    return Buffer.concat(chunks, count);
  }

  /** Removes and returns the first `count` bytes; null if there are fewer. */
  take(count: number): Buffer | null {
    const received = this.peek(count);
    if (received === null) return null;
    let left = count;
    let total = 0;
    for (const chunk of this.#segments) {
      if (chunk.length > left) break;
      left -= chunk.length;
      total += 1;
    }
    this.#segments.splice(0, total);
    const [first] = this.#segments;
    if (left > 0 && first !== undefined) this.#segments[0] = first.subarray(left);
    this.#byteLength -= count;
    return received;
  }
}
