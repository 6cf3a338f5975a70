/** A queue of received bytes. Reading copies bytes only if the range spans several chunks. */
export class ByteQueue {
  readonly #pieces: Buffer[] = [];
  #byteLength = 0;

  get byteLength(): number {
    return this.#byteLength;
  }

  push(piece: Buffer): void {
    if (piece.length === 0) return;
    this.#pieces.push(piece);
    this.#byteLength += piece.length;
  }

  /** Returns the first `count` bytes without removing them; null if there are fewer. */
  peek(count: number): Buffer | null {
    if (this.#byteLength < count) return null;
    const [first] = this.#pieces;
    if (first !== undefined && first.length >= count) return first.subarray(0, count);
    const pieces: Buffer[] = [];
    let left = count;
    for (const piece of this.#pieces) {
      if (left <= 0) break;
      pieces.push(piece.subarray(0, left));
      left -= piece.length;
    }
    return Buffer.concat(pieces, count);
  }

  /** Removes and returns the first `count` bytes; null if there are fewer. */
  take(count: number): Buffer | null {
    const taken = this.peek(count);
    if (taken === null) return null;
    let left = count;
    let whole = 0;
    for (const piece of this.#pieces) {
      if (piece.length > left) break;
      left -= piece.length;
      whole += 1;
    }
    this.#pieces.splice(0, whole);
    const [first] = this.#pieces;
    if (left > 0 && first !== undefined) this.#pieces[0] = first.subarray(left);
    this.#byteLength -= count;
    return taken;
  }
}
