/** The position of a part in the file of joined parts. */
export interface PartSlot extends Disposable {
  readonly offset: number;
  /** Marks the part as written: its position is not assigned again. */
  keep(): void;
}

/** The name of the file of joined parts in the folder of an upload. */
export const joinedFileName = "joined";

/**
 * Parts that are written at their position in the object, so that completing an upload copies nothing. Clients split
 * objects into parts of equal size, except the last: the first part that arrives determines the size. A position is
 * assigned once; a part that was uploaded before, is longer, or arrives during the completion is written to a file of
 * its own.
 */
export class JoinedParts {
  readonly #byteLengthMax: number;
  readonly #taken = new Set<number>();
  #partBytes: number | null = null;
  #writerCount = 0;
  #isClosed: boolean;

  /** `isClosed`: no positions are assigned, for an upload of a previous run. */
  constructor(options: { readonly byteLengthMax: number; readonly isClosed: boolean }) {
    this.#byteLengthMax = options.byteLengthMax;
    this.#isClosed = options.isClosed;
  }

  /**
   * Returns the position of a part of this length; null if it needs a file of its own. The caller disposes it after the
   * write.
   */
  slot(partNumber: number, byteLength: number | undefined, partBytesMin: number): PartSlot | null {
    if (this.#isClosed || byteLength === undefined || this.#taken.has(partNumber)) return null;
    if (this.#partBytes === null && byteLength < partBytesMin) return null;
    this.#partBytes ??= byteLength;
    const offset = (partNumber - 1) * this.#partBytes;
    if (byteLength > this.#partBytes || offset + byteLength > this.#byteLengthMax) return null;
    this.#taken.add(partNumber);
    this.#writerCount += 1;
    let [isKept, isWritten] = [false, false];
    return {
      offset,
      keep: () => (isKept = true),
      [Symbol.dispose]: () => {
        if (isWritten) return;
        isWritten = true;
        this.#writerCount -= 1;
        if (!isKept) this.#taken.delete(partNumber);
      },
    };
  }

  /**
   * Returns whether the file begins with exactly these parts and no write is in progress; then no more positions are
   * assigned. False changes nothing.
   */
  close(
    parts: readonly {
      readonly partNumber: number;
      readonly byteLength: number;
      readonly offset?: number | undefined;
    }[],
  ): boolean {
    let end = 0;
    for (const { byteLength, offset } of parts) {
      if (offset !== end) return false;
      end += byteLength;
    }
    // The file must end with the last part: an uploaded part that the client does not list would become part of the
    // object.
    if (this.#writerCount > 0 || this.#taken.size !== parts.length) return false;
    this.#isClosed = true;
    return true;
  }
}
